# SPDX-License-Identifier: Apache-2.0
"""The plots: what each shows. A plot without measurements is not made."""

import axes
import formats
import growth
import machine
import palette
import results as measured
import svg
import systems

SHOWN_OF_OURS = ("memory", "disk", "behind", "")


def all_of(results):
    """Names of files and their contents."""
    makers = {
        "overview": overview,
        "get-size": get_size,
        "get-disk-size": get_disk_size,
        "put-size": put_size,
        "overwrite-size": overwrite_size,
        "mixed-processes": mixed_processes,
        "memory-threads": memory_threads,
        "growth-entries": growth_entries,
        "growth-size": growth_size,
        "growth-processes": growth_processes,
        "growth-threads": growth_threads,
    }
    made = {f"{name}.svg": maker(results) for name, maker in makers.items()}
    return {name: picture for name, picture in made.items() if picture}


def main_file_system(results):
    """The one that plots show: journaled ext4 if it was measured."""
    present = results.file_systems()
    return "ext4" if "ext4" in present or not present else present[0]


def lines(rows, field, metric):
    """A line a system and variant, in the mode of writing that plots show."""
    rows = [row for row in rows if row["system"] != "ours" or row["variant"] in SHOWN_OF_OURS]
    groups = {}
    for (system, variant, sync), found in measured.split(rows).items():
        groups.setdefault((system, variant), {})[sync] = found
    series = []
    for system, variant in sorted(groups, key=lambda pair: systems.order((*pair, ""))):
        modes = groups[system, variant]
        op = next(iter(modes.values()))[0]["op"]
        sync = systems.preferred_sync(system, modes, op)
        points = growth.points(modes[sync], field, metric)
        if points:
            series.append(svg.Series(systems.label(system, variant, sync, op), palette.style(system, variant), points))
    return series


def panel(title, series, x, y_label, time):
    """A panel over all points of the lines."""
    heights = [height for one in series for _, height in one.points]
    widths = [width for one in series for width, _ in one.points]
    return svg.Panel(title, x(widths), (axes.times if time else axes.rates)(heights, y_label), series)


def over_sizes(widths):
    return axes.sizes(widths)


def over_processes(widths):
    return axes.counted(widths, "processes")


def over_threads(widths):
    return axes.counted(widths, "threads of one process")


def rate_and_p99(rows, field, x, title, below, results):
    """Two panels, operations per second and the slowest hundredth of them, with what is best said in words."""
    speed, slow = lines(rows, field, "ops_per_s"), lines(rows, field, "p99_ns")
    if len({width for one in speed for width, _ in one.points}) < 2 or not slow:
        return None
    panels = [
        panel("Operations per second", speed, x, "operations per second", False),
        panel("Slowest hundredth of the operations", slow, x, "99th percentile", True),
    ]
    return svg.figure(title, f"{below} · {where(results, rows)}", spoken(speed, field, "per second"), panels)


def spoken(series, field, unit):
    """The lines in words: the first and the last value of each."""
    ends = [
        f"{one.label}: {formats.per_second(one.points[0][1])} at {field} {one.points[0][0]}, "
        f"{formats.per_second(one.points[-1][1])} at {one.points[-1][0]}"
        for one in series
    ]
    return f"Medians, {unit}. " + "; ".join(ends) + "."


def where(results, rows):
    """Where and when: the file system, the machine, the number of rounds."""
    names = list(dict.fromkeys(row["fs"] for row in rows if row.get("fs", "-") != "-"))
    rounds = len({(row["run"], row.get("round")) for row in rows})
    parts = [machine.file_system(results, fs) for fs in names] + [
        machine.short(results),
        f"medians of {rounds} rounds" if rounds > 1 else "one round",
    ]
    return " · ".join(part for part in parts if part)


def rows_of(results, **selector):
    return results.select({"fs": main_file_system(results), **selector})


def get_size(results):
    rows = rows_of(results, workload="W1M", procs=1)
    return rate_and_p99(
        rows, "size", over_sizes, "get, default configuration", "one process, what fits in memory", results
    )


def get_disk_size(results):
    rows = rows_of(results, workload="W1", procs=1)
    return rate_and_p99(
        rows, "size", over_sizes, "get from the disk's cache", "one process, nothing kept in memory by ours", results
    )


def put_size(results):
    rows = rows_of(results, workload="W2", procs=1, sync={"not": ["on"]})
    return rate_and_p99(rows, "size", over_sizes, "put of a new key", "one process", results)


def overwrite_size(results):
    rows = rows_of(results, workload="W3", procs=1, sync={"not": ["on"]})
    return rate_and_p99(rows, "size", over_sizes, "put over an existing key", "one process", results)


def mixed_processes(results):
    rows = rows_of(results, workload="W5")
    return rate_and_p99(
        rows,
        "procs",
        over_processes,
        "90 % get, 10 % put, Zipf-distributed keys, 4 KiB",
        "all in one directory",
        results,
    )


def memory_threads(results):
    rows = [
        row for row in results.select({"workload": "W10"}) if row["system"] != "limit" or row["variant"] == "mutex64"
    ]
    time, speed = lines(rows, "threads", "p50_ns"), lines(rows, "threads", "ops_per_s")
    if not time or not speed:
        return None
    panels = [
        panel("Time of a hit, as each thread sees it", time, over_threads, "time of a hit", True),
        panel("Hits per second, all threads together", speed, over_threads, "hits per second", False),
    ]
    below = f"100,000 keys in random order · {where(results, rows)}"
    return svg.figure("get from memory", below, spoken(speed, "threads", "per second"), panels)


def overview(results):
    """README's: reads over the size of values, and the mixed load over processes."""
    get, mixed = rows_of(results, workload="W1M", procs=1), rows_of(results, workload="W5")
    sides = [
        ("get, one process", get, "size", over_sizes),
        ("90 % get, 10 % put, 4 KiB, Zipf", mixed, "procs", over_processes),
    ]
    panels, words = [], []
    for title, rows, field, x in sides:
        series = lines(rows, field, "ops_per_s")
        if series:
            panels.append(panel(title, series, x, "operations per second", False))
            words.append(f"{title}. {spoken(series, field, 'per second')}")
    if not panels:
        return None
    return svg.figure(
        "Operations per second, all processes together", where(results, get + mixed), " ".join(words), panels
    )


OPERATIONS = {
    "get_hit": "get",
    "get_miss": "get of a key never put",
    "get_miss_removed": "get of a removed key",
    "put_new": "put, new key",
    "put_over": "put, existing key",
    "open_first": "open and first get",
    "gc_scan": "gc, nothing to remove",
    "gc": "gc, half removed",
    "ls": "ls",
    "verify": "verify",
    "mixed": "90 % get, 10 % put",
}


def growth_entries(results):
    """A panel an operation, with the fitted power computed on to a billion entries."""
    rows = rows_of(results, workload="G-entries")
    panels, words = [], []
    for op, name in OPERATIONS.items():
        series = []
        for one in lines([row for row in rows if row["op"] == op], "n", "seconds" if op in growth.WALKS else "p50_ns"):
            one.points = [(x, y * (1e9 if op in growth.WALKS else 1)) for x, y in one.points]
            series.append(one)
        if series and growth.fit(series[0].points):
            panels.append(entries_panel(name, series))
            words.append(f"{name}, {panels[-1].notes[0][1]}")
    if not panels:
        return None
    below = f"marks: measured; dotted: fitted, computed on to 10⁹ · values of 64 bytes · {where(results, rows)}"
    return svg.figure("Growth with the number of entries", below, "; ".join(words) + ".", panels, columns=3, height=190)


def entries_panel(name, series):
    notes = []
    for one in series:
        fit = growth.fit(one.points)
        if fit:
            one.computed = fit.line(one.points[0][0])
            label = one.label.split(",")[0]
            notes.append(
                (one.style, f"{label}: n^{fit.exponent:.2f}, at 10⁹ {formats.span(fit.at(growth.COMPUTED_UP_TO))}")
            )
    heights = [y for one in series for _, y in one.points + one.computed]
    start = min(x for one in series for x, _ in one.points)
    low, high = min(heights), max(heights) * 10  # room for the notes above the lines
    y = axes.decades([min(low, high / 300), high], "time", axes.tick_time, most=5)
    return svg.Panel(name, axes.powers(start, growth.COMPUTED_UP_TO, "entries"), y, series, notes, direct=False)


def by_operation(results, workload, field, metric, x, title, y_label):
    """A panel an operation, ours and the limit."""
    rows = rows_of(results, workload=workload)
    panels, words = [], []
    for op, name in OPERATIONS.items():
        series = lines([row for row in rows if row["op"] == op], field, metric)
        if series:
            panels.append(panel(name, series, x, y_label, metric.endswith("_ns")))
            words.append(f"{name}. {spoken(series, field, metric)}" if not metric.endswith("_ns") else name)
    if not panels:
        return None
    return svg.figure(title, where(results, rows), " ".join(words), panels, height=220)


def growth_size(results):
    return by_operation(
        results, "G-size", "size", "p50_ns", over_sizes, "Growth with the size of a value", "median time"
    )


def growth_processes(results):
    return by_operation(
        results,
        "G-procs",
        "procs",
        "ops_per_s",
        over_processes,
        "Growth with processes, 4 KiB",
        "operations per second",
    )


def growth_threads(results):
    return by_operation(
        results,
        "G-threads",
        "threads",
        "ops_per_s",
        over_threads,
        "Growth with threads, 4 KiB",
        "operations per second",
    )
