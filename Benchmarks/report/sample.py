# SPDX-License-Identifier: Apache-2.0
"""Made-up results for the tests."""

import results
import targets

MACHINE = {
    "kind": "machine",
    "date": "2026-01-02T03:04:05Z",
    "cpu": "Example",
    "cores": 2,
    "kernel": "Linux 6.18",
    "commit": "abc",
    "mode": "full",
    "file_systems": {"ext4": {"type": "ext4", "how": "journaled ext4, loop device"}},
    "versions": {"lmdb": "0.9"},
    "notes": ["one note"],
}


def row(system, variant="", round=0, p50=1000.0, **fields):
    base = {
        "workload": "W1",
        "op": "get_hit",
        "fs": "ext4",
        "size": 4096,
        "procs": 1,
        "p99_ns": 3 * p50,
        "ops_per_s": 1e9 / p50,
        "errs": 0,
    }
    return {"system": system, "variant": variant, "round": round, "p50_ns": p50, **base, **fields}


def read(*lines):
    found = results.Results()
    for line in lines:
        found.add(line, 0)
    return found


def verdict(found, name):
    return next(one for one in targets.evaluate(targets.load(), found) if one["id"] == name)


def sample():
    """A small run: two sizes, two numbers of processes, growth, one peer that is absent."""
    lines = [MACHINE, {"kind": "absent", "system": "rocksdb", "why": "not installed"}]
    for number in range(5):
        for size in (4096, 65536):
            for procs in (1, 4):
                lines += [
                    row(*who, number, p50, size=size, procs=procs)
                    for who, p50 in ((("limit", ""), 4000), (("ours", "disk"), 5000))
                ]
            lines += [
                row(*who, number, p50, size=size, workload="W1M")
                for who, p50 in ((("lmdb", ""), 900), (("ours", "memory"), 300))
            ]
        for procs in (1, 2):
            for system, p50 in (("limit", 9000.0), ("ours", 3000.0), ("sqlite", 8000.0)):
                lines.append(
                    row(
                        system,
                        "memory" if system == "ours" else "",
                        number,
                        p50,
                        workload="W5",
                        op="mixed",
                        procs=procs,
                        ops_per_s=procs * 1e9 / p50,
                    )
                )
        for n in (1000, 10_000):
            lines.append(row("ours", "disk", number, 4000, workload="G-entries", n=n))
            lines.append(row("ours", "disk", number, 2000, workload="G-entries", op="gc", n=n, seconds=n * 2e-6))
    return lines
