# SPDX-License-Identifier: Apache-2.0
"""Logarithmic axes with ticks that people expect."""

import dataclasses
import math

import formats


@dataclasses.dataclass(frozen=True)
class Axis:
    label: str
    low: float
    high: float
    ticks: tuple  # (value, text); an empty text is a line of the grid without a label

    def place(self, value):
        """Where the value is between low (0) and high (1)."""
        return math.log(value / self.low) / math.log(self.high / self.low)


def tick_time(nanoseconds):
    for unit, length in (("ns", 1), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)):
        if nanoseconds < 999.5 * length:
            return f"{nanoseconds / length:g} {unit}"
    seconds = nanoseconds / 1e9
    return f"{seconds:,.0f} s" if seconds < 9999 else f"{tick_power(seconds)} s"


def tick_rate(value):
    for unit, length in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= length:
            return f"{value / length:g} {unit}"
    return f"{value:g}"


def tick_power(value):
    """10³ as people write it."""
    return "10" + str(round(math.log10(value))).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def decades(values, label, text, most=7):
    """An axis over all values: whole decades where there are many, else also 2 and 5, with a little room."""
    low, high = min(values), max(values)
    wide = math.log10(high / low)
    if wide < 1.5:
        low, high = low / 1.25, high * 1.25
        steps = (1, 2, 5)
    else:
        low, high = low / 1.3, high * 1.3
        steps = (1,) if wide > 3 else (1, 3) if wide > 2.2 else (1, 2, 5)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = max(1, math.ceil((last - first) / most))
    ticks = [(step * 10.0**power, power % every == 0) for power in range(first, last + 1) for step in steps]
    shown = tuple((value, text(value) if named else "") for value, named in ticks if low <= value <= high)
    return Axis(label, low, high, shown)


def points(values, label, text):
    """An axis whose ticks are the measured values: sizes, processes."""
    values = sorted(set(values))
    low, high = values[0], values[-1]
    room = (high / low) ** 0.04 if high > low else 1.5
    return Axis(label, low / room, high * room, tuple((value, text(value)) for value in values))


def sizes(values):
    return points(values, "value size", formats.size)


def counted(values, label):
    return points(values, label, str)


def times(values, label):
    return decades(values, label, tick_time)


def rates(values, label):
    return decades(values, label, tick_rate)


def powers(low, high, label):
    """Whole powers of ten from low to high."""
    first, last = round(math.log10(low)), round(math.log10(high))
    return Axis(
        label, low / 1.4, high * 1.4, tuple((10.0**power, tick_power(10.0**power)) for power in range(first, last + 1))
    )
