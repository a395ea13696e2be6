# SPDX-License-Identifier: Apache-2.0
"""The tables of RESULTS.md, one a workload and file system. Ratios are medians of the ratios within each round."""

import formats
import growth
import machine
import results as measured
import systems

BY_SIZE = (
    ("W1M", "get, default configuration, a working set that fits in memory"),
    ("W1", "get from disk, warm page cache, nothing kept in memory by ours"),
    ("W4", "get of a key that is not there"),
    ("W2", "put of new keys"),
    ("W2B", "put with write-behind, until the function returns"),
    ("W3", "put over existing keys"),
    ("W11", "a get as a command, start to end"),
)


def all_of(results):
    """(title, table) in the order of RESULTS.md."""
    found = []
    for workload, title in BY_SIZE:
        found += each_file_system(results, workload, title, by_size)
    found += each_file_system(results, "W5", "90 % get, 10 % put, Zipf(0.99), 4 KiB, by processes", by_processes)
    found += each_file_system(results, "W6", "gc: scan only, and trim to half by access time", collections)
    found += each_file_system(results, "W7", "open a directory, and the first get", openings)
    found += each_file_system(
        results, "W8", "stampede: 8 processes want one absent value, computing takes 200 ms", stampedes
    )
    found += each_file_system(results, "W10", "get from memory, 100,000 keys in random order", by_threads)
    return found


def growth_of(results):
    found = each_file_system(
        results, "G-entries", "growth with entries, 64 bytes each; walks in whole, the others an operation", entries
    )
    for workload, title, field, metric in (
        ("G-size", "growth with the size of a value, median time", "size", "p50_ns"),
        ("G-procs", "growth with processes, 4 KiB, operations per second", "procs", "ops_per_s"),
        ("G-procs", "growth with processes, 4 KiB, 99th percentile", "procs", "p99_ns"),
        ("G-threads", "growth with threads, 4 KiB, operations per second", "threads", "ops_per_s"),
        ("G-threads", "growth with threads, 4 KiB, 99th percentile", "threads", "p99_ns"),
    ):
        found += each_file_system(results, workload, title, lambda rows: along(rows, field, metric))
    return found


def each_file_system(results, workload, title, table):
    found = []
    for fs in dict.fromkeys(row.get("fs", "-") for row in results.select({"workload": workload})):
        rows = [row for row in results.select({"workload": workload}) if row.get("fs", "-") == fs]
        rounds = len({(row["run"], row.get("round")) for row in rows})
        place = "" if fs == "-" else f", {machine.file_system(results, fs)}"
        found.append((f"{workload}: {title}{place} ({rounds} rounds)", table(rows)))
    return found


def groups(rows):
    """(label, rows) a system, variant and mode of writing, in order."""
    found = measured.split(rows)
    return [(label(group, found[group]), found[group]) for group in sorted(found, key=systems.order)]


def label(group, rows):
    """The name, and that values were wrong."""
    return systems.label(*group, op=rows[0]["op"]) + (", **wrong values**" if measured.wrong(rows) else "")


def limit_of(rows, like):
    """The rows of the limit that waits for the disk exactly if these do."""
    limits = [row for row in rows if row["system"] in ("limit", "cat") and row["variant"] in ("", "mutex64")]
    waits = [systems.waits(row["system"], row["sync"], row["op"]) for row in [like[0], *limits]]
    return [row for row, waiting in zip(limits, waits[1:]) if waiting == waits[0]] or limits


def value(rows, metric):
    return formats.measured(measured.overall(rows, metric), metric)


def against(rows, limits, metric):
    return formats.times(measured.median(measured.slowdowns(rows, limits, metric)))


def spread(rows, metric):
    """The median and, in parentheses, the least and the greatest round."""
    rounds = list(measured.by_round(rows, metric).values())
    if len(rounds) < 2:
        return value(rows, metric)
    return f"{value(rows, metric)} ({formats.between(min(rounds), max(rounds), metric)})"


def pick(rows, field, wanted):
    return [row for row in rows if row.get(field) == wanted]


def values(rows, field):
    return sorted({row[field] for row in rows if row.get(field) is not None})


def by_size(rows):
    processes = values(rows, "procs")
    header = ["size", "system", "p50 (least–greatest)", "p99", "× limit", "CPU an operation", "operations"]
    header += [cell for count in processes[1:] for cell in (f"{count} processes", "× limit", "p99")]
    lines = []
    for size in values(rows, "size"):
        same = pick(rows, "size", size)
        for label, found in groups(same):
            one, limits = pick(found, "procs", processes[0]), limit_of(same, found)
            cells = [
                formats.size(size),
                label,
                spread(one, "p50_ns"),
                value(one, "p99_ns"),
                against(one, pick(limits, "procs", processes[0]), "p50_ns"),
            ]
            cells += [value(one, "cpu_ns_per_op"), value(one, "ops_per_s")]
            lines.append(
                cells
                + [
                    cell
                    for count in processes[1:]
                    for cell in throughput(pick(found, "procs", count), pick(limits, "procs", count))
                ]
            )
    return formats.markdown(header, lines, range(2, len(header)))


def throughput(rows, limits):
    return value(rows, "ops_per_s"), against(rows, limits, "ops_per_s"), value(rows, "p99_ns")


def by_processes(rows):
    processes = values(rows, "procs")
    header = ["system"] + [
        cell for count in processes for cell in (formats.several(count, "process"), "× limit", "p99")
    ]
    lines = []
    for label, found in groups(rows):
        limits = limit_of(rows, found)
        lines.append(
            [label]
            + [
                cell
                for count in processes
                for cell in throughput(pick(found, "procs", count), pick(limits, "procs", count))
            ]
        )
    return formats.markdown(header, lines, range(1, len(header)))


def collections(rows):
    header = [
        "operation",
        "system",
        "processes",
        "entries",
        "removed",
        "time (least–greatest)",
        "entries/s",
        "× limit on one thread",
    ]
    lines = []
    for op in ("gc_scan", "gc"):
        for label, found in groups(pick(rows, "op", op)):
            for count in values(found, "procs"):
                some = pick(found, "procs", count)
                limits = pick(pick(limit_of(rows, some), "op", op), "procs", 1)
                numbers = [formats.grouped(measured.overall(some, field) or 0) for field in ("entries", "removed")]
                lines.append(
                    [
                        op,
                        label,
                        count,
                        *numbers,
                        spread(some, "seconds"),
                        value(some, "entries_per_s"),
                        against(some, limits, "seconds"),
                    ]
                )
    return formats.markdown(header, lines, range(2, len(header)))


def openings(rows):
    header = ["entries", "system", "open", "first get", "both (least–greatest)", "99th percentile"]
    lines = []
    for count in values(rows, "n"):
        for label, found in groups(pick(rows, "n", count)):
            lines.append(
                [
                    formats.grouped(count),
                    label,
                    value(found, "open_ns"),
                    value(found, "first_get_ns"),
                    spread(found, "p50_ns"),
                    value(found, "p99_ns"),
                ]
            )
    return formats.markdown(header, lines, range(2, len(header)))


def stampedes(rows):
    header = ["system", "computations, median", "most", "until all are served"]
    lines = [
        [
            label,
            f"{measured.overall(found, 'computed'):g}",
            max(row["computed"] for row in found),
            spread(found, "wall_ms"),
        ]
        for label, found in groups(rows)
    ]
    return formats.markdown(header, lines, (1, 2, 3))


def by_threads(rows):
    threads = values(rows, "threads")
    header = ["system"] + [
        cell for count in threads for cell in (f"{formats.several(count, 'thread')}, a hit", "hits/s", "× limit")
    ]
    lines = []
    for label, found in groups(rows):
        cells = [label]
        for count in threads:
            some = pick(found, "threads", count)
            cells += [
                spread(some, "p50_ns"),
                value(some, "ops_per_s"),
                against(some, pick(limit_of(rows, found), "threads", count), "p50_ns"),
            ]
        lines.append(cells)
    return formats.markdown(header, lines, range(1, len(header)))


def entries(rows):
    """Times by the number of entries, and what the fitted power computes for a billion."""
    counts = values(rows, "n")
    header = ["operation", "system", *map(formats.grouped, counts), "fitted", "computed for 10⁹"]
    lines = []
    for op in dict.fromkeys(row["op"] for row in rows):
        walks = "seconds" in pick(rows, "op", op)[0] and op in growth.WALKS
        metric = "seconds" if walks else "p50_ns"
        for label, found in groups(pick(rows, "op", op)):
            fit = growth.fit(growth.points(found, "n", metric))
            ends = (
                [f"n^{fit.exponent:.2f}", formats.measured(fit.at(growth.COMPUTED_UP_TO), metric)]
                if fit
                else ["-", "-"]
            )
            lines.append([op, label, *(value(pick(found, "n", count), metric) for count in counts), *ends])
    return formats.markdown(header, lines, range(2, len(header)))


def along(rows, field, metric):
    """A line an operation and system, a column a value of the field."""
    columns = values(rows, field)
    header = ["operation", "system", *(formats.size(one) if field == "size" else str(one) for one in columns)]
    lines = [
        [op, label, *(value(pick(found, field, one), metric) for one in columns)]
        for op in dict.fromkeys(row["op"] for row in rows)
        for label, found in groups(pick(rows, "op", op))
    ]
    return formats.markdown(header, lines, range(2, len(header)))
