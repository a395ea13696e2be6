# SPDX-License-Identifier: Apache-2.0
"""The table of the targets, for a terminal and for RESULTS.md."""

import formats
import systems
import targets

HEADER = ["target", "fs", "ours", "compared with", "ratio (spread)", "wanted", "rounds", "best peer", "verdict"]
RIGHT = (2, 6)
SAID_ONCE = (1, 6)  # file system and rounds
ENOUGH = 5  # rounds: what the targets ask for
LEGEND = (
    "≤: times as slow as what it is compared with; ≥: times as fast. Medians over rounds; ratios are those within "
    "each round."
)


def cells(verdict):
    """One line of the table."""
    metric = verdict["metric"]
    peer = verdict["best_peer"]
    shown = shown_exponent if verdict["kind"] == "growth" else lambda value: formats.measured(value, metric)
    against = f"{verdict['against']} {shown(verdict['reference'])}" if verdict["against"] else "-"
    state = verdict["verdict"] + (f": {verdict['why']}" if verdict["why"] else "")
    return [
        f"{verdict['workload']} {verdict['what']}",
        verdict["fs"] or "-",
        formats.measured(verdict["ours"], metric),
        against,
        shown_ratio(verdict),
        wanted(verdict),
        verdict["rounds"] or "-",
        f"{peer['name']} {formats.measured(peer['value'], metric)}" if peer else "-",
        state,
    ]


def shown_exponent(value):
    return f"n^{value:.2f}"


def shown_ratio(verdict):
    if verdict["kind"] == "growth" and verdict["ratio"] is not None:
        return shown_exponent(verdict["ratio"])
    return formats.ratio_with_spread(verdict["ratios"], verdict["ratio"])


def wanted(verdict):
    """The bound: how many times as slow (≤) or as fast (≥), or a value."""
    bound = verdict["bound"]
    if verdict["kind"] == "slowdown":
        return f"≤ {bound:g} ×"
    if verdict["kind"] == "speedup":
        return f"≥ {bound:g} ×" if bound != 1 else "faster"
    if verdict["kind"] == "growth":
        return f"≤ limit + {bound:g}"
    return f"≤ {formats.measured(bound, verdict['metric'])}"


def measured(verdicts):
    return [one for one in verdicts if one["verdict"] != targets.NOT_MEASURED]


def counts(verdicts):
    """One sentence: how many are met, and how many were not measured."""
    number = {state: sum(one["verdict"] == state for one in verdicts) for state in (targets.MET, targets.NOT_MET)}
    text = f"{number[targets.MET]} of {sum(number.values())} measured claims are met"
    missing = len(verdicts) - sum(number.values())
    text += f"; {missing} were not measured." if missing else "."
    few = sum(one["rounds"] < ENOUGH for one in measured(verdicts))
    return text + (f" {few} of them over fewer than {ENOUGH} rounds." if few else "")


def missing(verdicts):
    """What was not measured, on one line; a file system of which nothing was is named once."""
    empty = {one["fs"] for one in verdicts} - {one["fs"] for one in measured(verdicts)}
    names = [one["id"] for one in verdicts if one["verdict"] == targets.NOT_MEASURED and one["fs"] not in empty]
    return ", ".join([f"all on {fs}" for fs in sorted(filter(None, empty))] + names)


def reasons(results):
    """One line for each peer that was left out and each run that failed or gave wrong values."""
    lines = [f"left out: {systems.label(one['system'])}: {one['why']}" for one in results.absent]
    failures = {}
    for one in results.failed:
        key = " ".join(str(one[field]) for field in ("workload", "op", "system", "variant", "fs") if one.get(field))
        failures.setdefault((key, one.get("why")), []).append(one)
    lines += [f"failed: {key}, {len(times)} time(s): {why}" for (key, why), times in failures.items()]
    wrong = {}
    for row in results.rows:
        if row.get("errs"):
            key = f"{row['workload']} {row['op']} {systems.label(row['system'], row['variant'], row['sync'])}"
            wrong[key] = wrong.get(key, 0) + row["errs"]
    return lines + [f"wrong: {key}: {number} operations" for key, number in wrong.items()]


def text(verdicts, results):
    """All of it for a terminal. A file system or a number of rounds that all share is said once, below."""
    rows = [list(map(str, cells(one))) for one in measured(verdicts)]
    shared = [index for index in SAID_ONCE if len({row[index] for row in rows} - {"-"}) < 2]
    kept = [index for index in range(len(HEADER)) if index not in shared]
    header, right = [HEADER[index] for index in kept], [kept.index(index) for index in RIGHT if index in kept]
    parts = [formats.plain(header, [[row[index] for index in kept] for row in rows], right), "", LEGEND]
    said = [f"{HEADER[index]}: {max(row[index] for row in rows)}" for index in shared if rows]
    parts += [", ".join(said)] if said else []
    parts.append(counts(verdicts))
    if missing(verdicts):
        parts.append(f"Not measured: {missing(verdicts)}")
    if results.file_systems() and not {"ext4", "tmpfs"} & set(results.file_systems()):
        parts.append("The targets are for journaled ext4 and tmpfs.")
    parts += results.notes + reasons(results)
    return "\n".join(parts)


def table(verdicts):
    """The measured claims for RESULTS.md; what is not met stands out."""
    rows = [
        [f"**{cell}**" if cell.startswith(targets.NOT_MET) else cell for cell in map(str, cells(one))]
        for one in measured(verdicts)
    ]
    return formats.markdown(HEADER, rows, RIGHT)
