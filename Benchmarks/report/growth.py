# SPDX-License-Identifier: Apache-2.0
"""How a cost grows, and what that computes for numbers of entries that nobody measured."""

import dataclasses
import math

import results

COMPUTED_UP_TO = 1e9
WALKS = ("gc_scan", "gc", "ls", "verify")  # these go through all entries and are shown in whole

# From this exponent on a cost is taken for one that goes through all entries (1, less a fixed part that counts while
# there are few), below it for one that looks some up: caches and the depth of trees add about as much each tenfold.
THROUGH_ALL = 0.5


@dataclasses.dataclass(frozen=True)
class Fit:
    """The exponent of the power that fits best, and fixed + each × n or fixed + each × log10 n to compute on with."""

    exponent: float
    fixed: float
    each: float

    def at(self, x):
        return self.fixed + self.each * scale(self.exponent, x)

    def line(self, start):
        """Points of the curve from the start to the largest number computed for."""
        steps = 48
        ratio = (COMPUTED_UP_TO / start) ** (1 / steps)
        return [(start * ratio**step, self.at(start * ratio**step)) for step in range(steps + 1)]


def scale(exponent, x):
    return x if exponent >= THROUGH_ALL else math.log10(x)


def points(rows, field, metric):
    """(value of the field, median over rounds of the metric), by the field."""
    values = sorted({row[field] for row in rows if row.get(field) is not None})
    pairs = [(value, results.overall([row for row in rows if row.get(field) == value], metric)) for value in values]
    return [(x, y) for x, y in pairs if y]


def fit(pairs):
    """Both fits, or None for fewer than two points."""
    if len({x for x, _ in pairs}) < 2:
        return None
    exponent, _ = straight([(math.log(x), math.log(y)) for x, y in pairs], [1.0] * len(pairs))
    # Relative errors count, else the largest times alone decide.
    weights = [1 / y**2 for _, y in pairs]
    each, fixed = straight([(scale(exponent, x), y) for x, y in pairs], weights)
    if each < 0:  # Nothing gets faster for ever: as if it did not grow.
        each, fixed = 0.0, sum(w * y for w, (_, y) in zip(weights, pairs)) / sum(weights)
    return Fit(exponent, fixed, each)


def straight(pairs, weights):
    """Slope and height at 0 of the line with the least squares."""
    total = sum(weights)
    mean_x = sum(w * x for w, (x, _) in zip(weights, pairs)) / total
    mean_y = sum(w * y for w, (_, y) in zip(weights, pairs)) / total
    across = sum(w * (x - mean_x) ** 2 for w, (x, _) in zip(weights, pairs))
    slope = sum(w * (x - mean_x) * (y - mean_y) for w, (x, y) in zip(weights, pairs)) / across
    return slope, mean_y - slope * mean_x
