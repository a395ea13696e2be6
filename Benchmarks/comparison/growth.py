# SPDX-License-Identifier: Apache-2.0
"""How costs grow: with entries, the size of values, processes and threads."""

from dataclasses import dataclass

from .session import log
from .systems import LIMIT, ours
from .workloads import HOLDING

KIB, MIB = 1 << 10, 1 << 20
# A value of this size leaves a million of them room on the image.
SMALL = 64
# What processes and threads share.
SHARED_KEYS = 10_000


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    entries: tuple
    sizes: tuple
    # Seconds that reads, a mix and writes are timed.
    reads: float
    mix: float
    writes: float


SIZES = (64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
QUICK = Scale((1_000, 10_000, 100_000), (64, KIB, 4 * KIB, 64 * KIB, MIB, 4 * MIB), 0.1, 0.2, 0.2)
FULL = Scale((1_000, 10_000, 100_000, 1_000_000), SIZES, 0.3, 0.5, 0.5)


class Growth:
    def __init__(self, driver, place, scale, rounds):
        self.driver, self.place, self.scale = driver, place, scale
        self.rounds = range(rounds)

    def entries(self):
        """Each operation in directories of a thousand to a million entries."""
        for n in self.scale.entries:
            for system in (LIMIT, ours("disk")):
                directory = self.driver.fill(self.place, system, "entries", size=SMALL, n=n)
                self.place.sync()
                # What `put_more` adds in one round would else be found by the misses of the next.
                for operations in (self.steady, self.growing):
                    for number in self.rounds:
                        operations(system, directory, number, n)
                self.driver.drop(self.place, "entries")
                self.trims(system, n)
            log("growth: %d entries" % n)

    def measure(self, workload, system, op, directory, number, procs=1, **options):
        return self.driver.measure(self.place, system, op, directory, workload, number, procs, timeout=1800, **options)

    def operation(self, op, system, directory, number, n, **options):
        self.measure("G-entries", system, op, directory, number, size=SMALL, n=n, **options)

    def steady(self, system, directory, number, n):
        """What leaves the entries as they are."""
        self.operation("get_hit", system, directory, number, n, secs=self.scale.reads)
        self.operation("get_miss", system, directory, number, n, secs=self.scale.reads)
        opener = ours("memory") if system.name == "ours" else system
        self.operation("open_first", opener, directory, number, n)
        self.operation("gc_scan", system, directory, number, n)
        if system.name == "ours":
            self.operation("ls", system, directory, number, n)

    def growing(self, system, directory, number, n):
        """What replaces entries, and what adds a few."""
        self.place.sync()
        self.operation("put_over", system, directory, number, n, cap=self.scale.writes)
        self.place.sync()
        self.operation("put_more", system, directory, number, n, cap=self.scale.writes, extra={"op": "put_new"})

    def trims(self, system, n):
        """Each needs a directory of its own; of the largest one must do."""
        for number in self.rounds if n < 1_000_000 else (0,):
            directory = self.driver.fill(self.place, system, "trim", op="gcfill", size=SMALL, n=n)
            self.place.sync()
            self.measure("G-entries", system, "gc", directory, number, size=SMALL, n=n)
            self.driver.drop(self.place, "trim")

    def sizes(self):
        for size in self.scale.sizes:
            n = max(8, min(5_000, 32 * MIB // size))
            systems = [LIMIT, ours("disk")]
            places = {system: self.driver.fill(self.place, system, "sizes", size=size, n=n) for system in systems}
            self.place.sync()
            readers = {**places, ours("memory"): places[ours("disk")]}
            for number in self.rounds:
                for system in self.driver.shuffled(readers):
                    self.measure("G-size", system, "get_hit", readers[system], number, size=size, n=n, secs=self.scale.reads, warm_ms=HOLDING)
                for system in self.driver.shuffled(systems):
                    self.place.sync()
                    self.measure("G-size", system, "put_over", places[system], number, size=size, n=n, cap=self.scale.writes)
                for system in self.driver.shuffled(systems):
                    directory = self.place.new("size")
                    self.place.sync()
                    self.measure("G-size", system, "put_new", directory, number, size=size, n=n, cap=self.scale.writes)
                    self.place.remove(directory)
            self.driver.drop(self.place, "sizes")
            log("growth: %d bytes" % size)

    def workers(self):
        """Processes, each with a cache of its own, and threads that share one."""
        options = dict(size=4 * KIB, n=SHARED_KEYS, secs=self.scale.mix, warm_ms=HOLDING)
        places = {system: self.driver.fill(self.place, system, "workers", size=4 * KIB, n=SHARED_KEYS) for system in (LIMIT, ours("disk"))}
        places[ours("memory")] = places[ours("disk")]
        self.place.sync()
        for number in self.rounds:
            for procs in (1, 2, 4, 8, 16):
                for system in self.driver.shuffled(places):
                    for op in ("get_hit", "mixed"):
                        self.measure("G-procs", system, op, places[system], number, procs, **options)
                    if system.variant != "memory":
                        self.measure("G-procs", system, "put_over", places[system], number, procs, size=4 * KIB, n=SHARED_KEYS, cap=self.scale.writes)
            for threads in (1, 2, 4, 8):
                for system in self.driver.shuffled([ours("disk"), ours("memory")]):
                    for op in ("get_hit", "mixed"):
                        self.measure("G-threads", system, op, places[system], number, threads=threads, **options)
            log("growth: processes and threads, round %d" % number)
        self.driver.drop(self.place, "workers")

    def run(self):
        self.entries()
        self.sizes()
        self.workers()
