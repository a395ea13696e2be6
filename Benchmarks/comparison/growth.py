# SPDX-License-Identifier: Apache-2.0
"""How costs grow: with entries, the size of values, processes and threads."""

from .session import log
from .systems import LIMIT, ours
from .workloads import HOLDING

KIB, MIB = 1 << 10, 1 << 20
# A value of this size leaves a million of them room on the image.
SMALL = 64
# What processes and threads share.
SHARED_KEYS = 10_000


class Growth:
    def __init__(self, driver, place, is_full):
        self.driver, self.place, self.is_full = driver, place, is_full
        self.rounds = range(driver.rounds)

    def entries(self):
        """Each operation in directories of a thousand to a million entries."""
        for n in (1_000, 10_000, 100_000) + ((1_000_000,) if self.is_full else ()):
            for system in (LIMIT, ours("disk")):
                directory = self.driver.fill(self.place, system, "entries", size=SMALL, n=n)
                self.place.sync()
                for number in self.rounds:
                    self.operations(system, directory, number, n)
                self.driver.drop(self.place, "entries")
                self.trims(system, n)
            log("growth: %d entries" % n)

    def measure(self, workload, system, op, directory, number, procs=1, **options):
        return self.driver.measure(self.place, system, op, directory, workload, number, procs, timeout=1800, **options)

    def operations(self, system, directory, number, n):
        """What leaves the number of entries as it is, and last what adds a few."""
        def measure(op, of=system, **options):
            self.measure("G-entries", of, op, directory, number, size=SMALL, n=n, **options)
        measure("get_hit", secs=0.3)
        measure("get_miss", secs=0.3)
        measure("open_first", of=ours("memory") if system.name == "ours" else system)
        measure("gc_scan")
        if system.name == "ours":
            measure("ls")
        self.place.sync()
        measure("put_over", cap=0.3)
        self.place.sync()
        measure("put_more", cap=0.3, extra={"op": "put_new"})

    def trims(self, system, n):
        """Each needs a directory of its own; of the largest one must do."""
        for number in self.rounds if n < 1_000_000 else (0,):
            directory = self.driver.fill(self.place, system, "trim", op="gcfill", size=SMALL, n=n)
            self.place.sync()
            self.measure("G-entries", system, "gc", directory, number, size=SMALL, n=n)
            self.driver.drop(self.place, "trim")

    def sizes(self):
        for size in (64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB):
            n = max(8, min(5_000, 32 * MIB // size))
            systems = [LIMIT, ours("disk")]
            places = {system: self.driver.fill(self.place, system, "sizes", size=size, n=n) for system in systems}
            self.place.sync()
            readers = {**places, ours("memory"): places[ours("disk")]}
            for number in self.rounds:
                for system in self.driver.shuffled(readers):
                    self.measure("G-size", system, "get_hit", readers[system], number, size=size, n=n, secs=0.2, warm_ms=HOLDING)
                for system in self.driver.shuffled(systems):
                    self.place.sync()
                    self.measure("G-size", system, "put_over", places[system], number, size=size, n=n, cap=0.5)
                for system in self.driver.shuffled(systems):
                    directory = self.place.new("size")
                    self.place.sync()
                    self.measure("G-size", system, "put_new", directory, number, size=size, n=n, cap=0.5)
                    self.place.remove(directory)
            self.driver.drop(self.place, "sizes")
            log("growth: %d bytes" % size)

    def workers(self):
        """Processes, each with a cache of its own, and threads that share one."""
        options = dict(size=4 * KIB, n=SHARED_KEYS, secs=0.5, warm_ms=HOLDING)
        places = {system: self.driver.fill(self.place, system, "workers", size=4 * KIB, n=SHARED_KEYS) for system in (LIMIT, ours("disk"))}
        places[ours("memory")] = places[ours("disk")]
        self.place.sync()
        for number in self.rounds:
            for procs in (1, 2, 4, 8, 16):
                for system in self.driver.shuffled(places):
                    for op in ("get_hit", "mixed"):
                        self.measure("G-procs", system, op, places[system], number, procs, **options)
                    if system.variant != "memory":
                        self.measure("G-procs", system, "put_over", places[system], number, procs, size=4 * KIB, n=SHARED_KEYS, cap=0.5)
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
