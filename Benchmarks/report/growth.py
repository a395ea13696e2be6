# SPDX-License-Identifier: Apache-2.0
"""How a cost grows: a power law fitted to medians, and what it computes for numbers nobody measured."""

import dataclasses
import math

import results

COMPUTED_UP_TO = 1e9
WALKS = ("gc_scan", "gc", "ls", "verify")  # these go through all entries and are shown in whole


@dataclasses.dataclass(frozen=True)
class Fit:
    """y = factor × x^exponent."""

    factor: float
    exponent: float

    def at(self, x):
        return self.factor * x**self.exponent


def points(rows, field, metric):
    """(value of the field, median over rounds of the metric), by the field."""
    values = sorted({row[field] for row in rows if row.get(field) is not None})
    pairs = [(value, results.overall([row for row in rows if row.get(field) == value], metric)) for value in values]
    return [(x, y) for x, y in pairs if y]


def fit(pairs):
    """The power law by least squares of the logarithms, or None for fewer than two points."""
    if len({x for x, _ in pairs}) < 2:
        return None
    xs, ys = [math.log(x) for x, _ in pairs], [math.log(y) for _, y in pairs]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    exponent = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / sum((x - mean_x) ** 2 for x in xs)
    return Fit(math.exp(mean_y - exponent * mean_x), exponent)
