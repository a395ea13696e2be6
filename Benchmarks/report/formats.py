# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them."""


def three(value):
    """Three significant digits, without an exponent: 0.312, 4.36, 44.1, 1234."""
    magnitude = abs(value)
    digits = 0 if magnitude >= 99.95 else 1 if magnitude >= 9.995 else 2 if magnitude >= 0.9995 else 3
    return f"{value:.{digits}f}"


def grouped(value):
    return f"{value:,.0f}"


def span(nanoseconds):
    """A time: 0.312 µs, 44.1 µs, 1.83 ms, 2.40 s; long ones in minutes, hours, days."""
    for unit, length in (("µs", 1e3), ("ms", 1e6), ("s", 1e9)):
        if nanoseconds < 999.5 * length:
            return f"{three(nanoseconds / length)} {unit}"
    seconds = nanoseconds / 1e9
    for unit, length, limit in (("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < limit:
            return f"{three(seconds / length)} {unit}"
    return f"{three(seconds / 86_400)} days"


def per_second(value):
    """A rate without its unit: 63.0 k, 1.23 M, 812."""
    for unit, size in ((" M", 1e6), (" k", 1e3)):
        if value >= 0.9995 * size:
            return f"{three(value / size)}{unit}"
    return three(value)


def several(count, thing):
    """1 thread, 2 threads, 2 processes."""
    plural = "es" if thing.endswith("s") else "s"
    return f"{count} {thing}{'' if count == 1 else plural}"


def size(count):
    for unit, length in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= length:
            return f"{count / length:g} {unit}"
    return f"{count} B"


def measured(value, metric):
    """A value of the metric, with its unit; a dash where there is none."""
    if value is None:
        return "-"
    if "_ns" in metric:
        return span(value)
    if metric == "seconds":
        return span(value * 1e9)
    if metric.endswith("_ms"):
        return span(value * 1e6)
    if metric.endswith("_per_s"):
        return f"{per_second(value)}/s"
    return f"{value:g}"


def between(low, high, metric):
    """From low to high, the unit once if it is the same."""
    first, last = measured(low, metric), measured(high, metric)
    number, _, unit = first.partition(" ")
    return f"{number if last.endswith(f' {unit}') else first}–{last}"


def times(ratio):
    """A ratio: 1.32 ×."""
    return "-" if ratio is None else f"{three(ratio)} ×"


def ratio_with_spread(ratios, middle):
    """The median ratio and, with more than one round, the smallest and the largest."""
    if middle is None:
        return "-"
    if len(ratios) < 2:
        return times(middle)
    return f"{times(middle)} ({three(min(ratios))}–{three(max(ratios))})"


def markdown(header, rows, right=()):
    """A table; columns whose index is in `right` are aligned to the right."""
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("|" + "|".join("--:" if index in right else "---" for index in range(len(header))) + "|")
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def plain(header, rows, right=()):
    """The same for a terminal: columns padded to their widest cell."""
    table = [list(map(str, row)) for row in [header, *rows]]
    widths = [max(len(row[index]) for row in table) for index in range(len(header))]
    lines = []
    for row in table:
        cells = [
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
