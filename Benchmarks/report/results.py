# SPDX-License-Identifier: Apache-2.0
"""The lines of results.jsonl, how rows are chosen, and medians and ratios by round."""

import json
import statistics


class Results:
    """All measurements of one or more files, and what the runs said about themselves."""

    def __init__(self, rows=(), machines=(), absent=(), failed=(), notes=()):
        self.rows = list(rows)
        self.machines = list(machines)
        self.absent = list(absent)
        self.failed = list(failed)
        self.notes = list(notes)

    @classmethod
    def read(cls, paths):
        results = cls()
        for number, path in enumerate(paths):
            with open(path, encoding="utf-8") as lines:
                for line in lines:
                    if line.strip():
                        results.add(json.loads(line), number)
        return results

    def add(self, line, run):
        """Takes one line. Rounds of different files are different rounds: they did not run side by side."""
        kind = line.get("kind", "measurement")
        if kind == "machine":
            self.machines.append(line)
            self.notes += [note for note in line.get("notes", []) if note not in self.notes]
        elif kind == "absent":
            self.absent.append(line)
        elif kind == "failed" or "failed" in line:
            self.failed.append({"why": line.get("failed"), **line})
        elif kind == "measurement":
            self.rows.append({"variant": "", "sync": "default", "procs": 1, "threads": 1, **line, "run": run})

    def select(self, selector):
        return [row for row in self.rows if matches(row, selector)]

    def file_systems(self):
        """The labels of the file systems that were measured, in the order in which they first appear."""
        return list(dict.fromkeys(row["fs"] for row in self.rows if row.get("fs", "-") != "-"))

    def values(self, field):
        return sorted({row[field] for row in self.rows if field in row})


def matches(row, selector):
    """Whether every field of the selector fits: a value, a list of values, or {"not": [values]}."""
    for field, wanted in selector.items():
        value = row.get(field)
        if isinstance(wanted, dict):
            if value in wanted["not"]:
                return False
        elif isinstance(wanted, list):
            if value not in wanted:
                return False
        elif value != wanted:
            return False
    return True


def rate(metric):
    """Whether more is better."""
    return metric.endswith("_per_s")


def median(values):
    values = list(values)
    return statistics.median(values) if values else None


def by_round(rows, metric):
    """The metric's median of each round; a round of another file or file system is another round."""
    rounds = {}
    for row in rows:
        if row.get(metric) is not None:
            rounds.setdefault((row["run"], row.get("fs"), row.get("round", 0)), []).append(row[metric])
    return {number: statistics.median(values) for number, values in rounds.items()}


def overall(rows, metric):
    """The median over rounds, or None."""
    return median(by_round(rows, metric).values())


def slowdowns(rows, reference, metric):
    """By round: how many times as slow as the reference of the same round. Rounds that one of them lacks count for
    nothing."""
    ours, theirs = by_round(rows, metric), by_round(reference, metric)
    shared = [number for number in ours if number in theirs and ours[number] and theirs[number]]
    if rate(metric):
        return [theirs[number] / ours[number] for number in shared]
    return [ours[number] / theirs[number] for number in shared]


def split(rows):
    """Rows by (system, variant, sync)."""
    groups = {}
    for row in rows:
        groups.setdefault((row["system"], row["variant"], row["sync"]), []).append(row)
    return groups


def wrong(rows):
    """How many operations of these rows read or did something wrong."""
    return sum(row.get("errs", 0) for row in rows)
