# SPDX-License-Identifier: Apache-2.0
"""The targets of targets.json as single claims, and what the measurements say to each."""

import itertools
import json
import os
import statistics

import formats
import growth
import results as measured
import systems

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets.json")
LIMIT = {"system": ["limit", "cat"], "variant": ["", "mutex64"], "sync": {"not": ["on"]}}
INHERITED = ("workload", "op", "size", "procs", "threads", "n")
# How many times its least round the greatest of a reference may be: beyond that the median of the ratios is as much
# the machine's as ours, and says so.
STEADY = 2
MET, NOT_MET, NOT_MEASURED = "met", "NOT MET", "not measured"


def told(path=PATH):
    """What README shows: [text, identifier] of claims."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)["readme"]


def load(path=PATH):
    """The single claims; selectors in them are complete."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    return [claim for entry in data["claims"] for claim in expand(entry, data["peers"])]


def expand(entry, peers):
    """One claim for each combination of `each`; a list of bounds goes along the first of its fields."""
    fields = entry.get("each", {})
    for values in itertools.product(*fields.values()):
        chosen = dict(zip(fields, values))
        claim = {**fill(entry, texts(chosen)), "each": chosen}
        if isinstance(entry["bound"], list):
            claim["bound"] = entry["bound"][list(fields.values())[0].index(values[0])]
        claim["ours"] = {**claim["ours"], **{field: value for field, value in chosen.items() if field != "name"}}
        shared = {field: claim["ours"][field] for field in INHERITED if field in claim["ours"]}
        if "reference" in claim:
            claim["every"] = claim["reference"]["system"] == "peers"
            claim["reference"] = inherit(shared, claim["reference"], peers)
        claim["peers"] = inherit(shared, {"system": "peers", **claim.get("peers", {})}, peers)
        # Where a claim is about another way of asking the limit, what is shown is that.
        is_of_limit = claim.get("reference", {}).get("system") == "limit"
        claim["limit"] = claim["reference"] if is_of_limit else {**shared, **LIMIT}
        claim["workload"] = claim["ours"]["workload"]
        claim["id"] = claim["id"].replace(" ", "")
        yield claim


def texts(chosen):
    """What `{field}` is replaced with, in texts; `{label}` is the name of the system `name`."""
    words = {field: formats.size(value) if field == "size" else str(value) for field, value in chosen.items()}
    if "name" in chosen:
        words["label"] = systems.label(chosen["name"])
    for field in ("procs", "threads"):
        if words.get(field) == "1":
            words["(s)"], words["(es)"] = "", ""
    return {"(s)": "s", "(es)": "es", **words}


def fill(part, words):
    """The texts of a nested structure with their placeholders filled in."""
    if isinstance(part, dict):
        return {key: fill(value, words) for key, value in part.items()}
    if isinstance(part, list):
        return [fill(value, words) for value in part]
    if isinstance(part, str):
        for word, text in words.items():
            part = part.replace(word if word.startswith("(") else "{" + word + "}", text)
    return part


def inherit(shared, selector, peers):
    """A selector with the fields of ours that it does not name; "peers" stands for all of them, null for any value."""
    merged = {**shared, **selector}
    if merged.get("system") == "peers":
        merged["system"] = peers
    return {field: value for field, value in merged.items() if value is not None}


def evaluate(claims, results):
    """The verdicts, a claim and file system each."""
    return [judge(claim, results, fs) for claim in claims for fs in file_systems(claim, results)]


def file_systems(claim, results):
    """Those that the claim is about and, if none of them was measured, those on disk that were; None: all."""
    wanted, present = claim.get("fs"), results.file_systems()
    if not wanted or not present:
        return [None] if not wanted else wanted
    if set(wanted) & set(present):
        return wanted
    return [fs for fs in present if fs != "tmpfs"] or wanted


def judge(claim, results, fs):
    """What was measured for one claim, and whether it holds."""
    place = {"fs": fs} if fs else {}
    rows = results.select({**claim["ours"], **place})
    verdict = {
        "id": claim["id"] + (f"@{fs}" if fs else ""),
        "workload": claim["workload"],
        "what": claim["what"],
        "fs": fs,
        "kind": claim["kind"],
        "metric": claim["metric"],
        "bound": claim["bound"],
        "comment": claim.get("comment", ""),
        "ours": None,
        "reference": None,
        "against": None,
        "ratio": None,
        "ratios": [],
        "rounds": 0,
        "limit": None,
        "limit_ratio": None,
        "best_peer": best_peer(results.select({**claim["peers"], **place}), claim["metric"]),
        "verdict": NOT_MEASURED,
        "why": "",
    }
    if rows:
        limits = results.select({**claim["limit"], **place})
        verdict["ours"] = measured.overall(rows, claim["metric"])
        verdict["limit"] = measured.overall(limits, claim["metric"])
        verdict["limit_ratio"] = measured.median(measured.slowdowns(rows, limits, claim["metric"]))
        RULES[claim["kind"]](
            claim, verdict, rows, results.select({**claim["reference"], **place}) if "reference" in claim else []
        )
    verdict["why"] = "; ".join(filter(None, [verdict["why"], without(claim, verdict, results, place)]))
    failures = [one for one in results.failed if measured.matches(one, {**claim["ours"], **place})]
    for number, words in ((len(failures), "runs failed"), (measured.wrong(rows), "operations went wrong")):
        if number:
            verdict["verdict"], verdict["why"] = NOT_MET, f"{number} {words}"
    return verdict


def ratio(claim, verdict, rows, reference):
    """The kinds `slowdown` and `speedup`: of several references the one with the worst ratio counts."""
    slower = claim["kind"] == "slowdown"
    found = []
    for group, others in measured.split([row for row in reference if not row.get("errs")]).items():
        ratios = measured.slowdowns(rows, others, claim["metric"])
        ratios = ratios if slower else [1 / one for one in ratios]
        if ratios:
            found.append((statistics.median(ratios), ratios, group, others))
    if not found:
        verdict["why"] = "nothing to compare with in the same rounds"
        return
    worst, ratios, group, others = (max if slower else min)(found, key=lambda one: one[0])
    verdict.update(
        ratio=worst,
        ratios=ratios,
        rounds=len(ratios),
        reference=measured.overall(others, claim["metric"]),
        against=systems.label(*group, op=rows[0]["op"]),
    )
    verdict["why"] = unsteady(others, claim["metric"], verdict["against"])
    holds = worst <= claim["bound"] if slower else worst >= claim["bound"]
    verdict["verdict"] = MET if holds and not (claim.get("strict") and worst == claim["bound"]) else NOT_MET


def unsteady(rows, metric, name):
    """That a reference had rounds far apart, as one has that mostly waits for memory beside noisy neighbours."""
    rounds = measured.by_round(rows, metric).values()
    if not rounds or not min(rounds) or max(rounds) <= STEADY * min(rounds):
        return ""
    return f"rounds of {name} are {max(rounds) / min(rounds):.1f} × apart"


def without(claim, verdict, results, place):
    """Which systems of the reference were not measured: those that the claim names, and of "every peer" those that
    the run had to leave out."""
    if (
        verdict["verdict"] == NOT_MEASURED
        or "reference" not in claim
        or not isinstance(claim["reference"]["system"], list)
    ):
        return ""
    there = {row["system"] for row in results.select({**claim["reference"], **place})}
    left_out = {one["system"] for one in results.absent}
    wanted = [one for one in claim["reference"]["system"] if one in left_out or not claim["every"]]
    missing = [systems.label(one) for one in wanted if one not in there]
    return f"without {', '.join(missing)}" if missing else ""


def absolute(claim, verdict, rows, reference):
    """The kind `absolute`; a reference is shown beside it and decides nothing."""
    rounds = measured.by_round(rows, claim["metric"])
    if not rounds:
        return
    if claim.get("over") == "max":
        verdict["ours"] = max(rounds.values())
    verdict["rounds"] = len(rounds)
    verdict["verdict"] = MET if verdict["ours"] <= claim["bound"] else NOT_MET
    if reference:
        verdict["reference"] = measured.overall(reference, claim["metric"])
        verdict["against"] = systems.label(*next(iter(measured.split(reference))), op=rows[0]["op"])
        verdict["ratios"] = measured.slowdowns(rows, reference, claim["metric"])
        verdict["ratio"] = measured.median(verdict["ratios"])


def exponent(claim, verdict, rows, limits):
    """The kind `growth`: by how much the power of n that fits the medians is above that of the limit, whose growth is
    that of the caches of processor and kernel."""
    verdict["ours"] = None
    ours, limit = steepest(rows, claim["metric"]), steepest(limits, claim["metric"])
    if ours is None:
        verdict["why"] = "fewer than two numbers of entries"
        return
    verdict.update(ratio=ours, ratios=[ours], rounds=len({row.get("round") for row in rows}))
    if limit is not None:
        verdict.update(reference=limit, against=systems.label("limit"))
    verdict["verdict"] = MET if ours - max(0, limit or 0) <= claim["bound"] else NOT_MET


def steepest(rows, metric):
    """The greatest exponent of n; None where there are too few points."""
    fits = [growth.fit(growth.points(group, "n", metric)) for group in measured.split(rows).values()]
    return max((fit.exponent for fit in fits if fit), default=None)


RULES = {"slowdown": ratio, "speedup": ratio, "absolute": absolute, "growth": exponent}


def best_peer(rows, metric):
    """(label, value) of the peer with the best median; one with wrong values, or measured in fewer than half of the
    rounds that another was, is none."""
    groups = {group: rows for group, rows in measured.split(rows).items() if not measured.wrong(rows)}
    counts = {group: len(measured.by_round(rows, metric)) for group, rows in groups.items()}
    medians = {
        group: measured.overall(rows, metric)
        for group, rows in groups.items()
        if counts[group] and 2 * counts[group] >= max(counts.values())
    }
    if not medians:
        return None
    group = (max if measured.rate(metric) else min)(medians, key=medians.get)
    return {"name": systems.label(*group, op=groups[group][0]["op"]), "value": medians[group]}
