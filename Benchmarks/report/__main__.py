# SPDX-License-Identifier: Apache-2.0
"""python3 Benchmarks/report RESULTS.jsonl ...: the table of the targets; with --write, all that is shown of them."""

import argparse
import json
import os
import sys

import document
import results
import summary
import targets

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def arguments(words):
    parser = argparse.ArgumentParser(prog="report", description=__doc__)
    parser.add_argument("results", nargs="+", metavar="RESULTS.jsonl")
    parser.add_argument("--write", action="store_true", help="write RESULTS.md, the plots and README's section")
    parser.add_argument("--into", default=CHECKOUT, metavar="DIR", help="the checkout that --write writes into")
    parser.add_argument("--json", action="store_true", help="print the claims as one JSON array")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a claim that was measured is not met")
    parser.add_argument("--only", metavar="W1,W10", help="only the claims of these workloads")
    return parser.parse_args(words)


def write(checkout, found):
    try:
        paths = document.write(checkout, found, targets.evaluate(targets.load(), found))
    except document.NoMarkers as missing:
        sys.exit(str(missing))
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)


def main(words):
    options = arguments(words)
    found = results.Results.read(options.results)
    claims = targets.load()
    if options.only:
        claims = [claim for claim in claims if claim["workload"] in options.only.split(",")]
    verdicts = targets.evaluate(claims, found)
    if options.json:
        print(json.dumps(verdicts, indent=1, ensure_ascii=False))
    else:
        print(summary.text(verdicts, found))
    if options.write:
        write(options.into, found)
    return 1 if options.strict and any(one["verdict"] == targets.NOT_MET for one in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
