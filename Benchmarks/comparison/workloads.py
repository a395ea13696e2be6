# SPDX-License-Identifier: Apache-2.0
"""The workloads; each fills what it needs, measures all systems in shuffled order in each round, and cleans up."""

import os
import time
from dataclasses import dataclass, replace

from .session import BINARIES, log
from .systems import ADAPTER, COMMANDS, LIMIT, LIMIT_ONCE, ours

KIB, MIB = 1 << 10, 1 << 20
SIZES = (128, 4 * KIB, 64 * KIB, MIB)
# Keys by size, as they were when the targets were set.
KEYS = {128: 20000, 4 * KIB: 20000, 64 * KIB: 4096, MIB: 384}
# Keys by size that the memory tier of the default configuration holds: at most 24 of its 64 MiB.
HELD_KEYS = {128: 10000, 4 * KIB: 6000, 64 * KIB: 384, MIB: 24}
# Milliseconds in which all of those have been read once, so that they are in memory.
HOLDING = 5000
# How long somebody computes in a stampede, in milliseconds.
COMPUTATION = 200


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    is_full: bool
    # Seconds that reads, and a mix, are timed; milliseconds that they go on before, the mix longer: a memory tier
    # has to fill.
    slice: float
    mixed_slice: float
    warm_ms: int
    mixed_warm_ms: int
    # Seconds that writes are timed at most, and how many keys they write at most.
    cap: float
    put_keys: int
    # Keys of the mixed workload, entries of a collection and of the larger directory that is opened.
    mixed_keys: int
    gc_entries: int
    open_entries: int
    hit_seconds: float
    spawns: int


QUICK = Scale(False, 0.08, 0.15, 120, 200, 0.5, 3000, 40_000, 20_000, 20_000, 0.1, 60)
FULL = Scale(True, 0.3, 0.6, 300, 600, 1, 10_000, 100_000, 100_000, 100_000, 0.4, 100)

# On the second file system of a full run, which shows what the first one adds: without it that takes an hour.
SECOND = replace(QUICK, mixed_keys=100_000)


class Workloads:
    def __init__(self, driver, place, fastest, peers, scale, variants):
        self.driver, self.place, self.fastest = driver, place, fastest
        self.peers, self.scale, self.variants = peers, scale, variants
        self.rounds = range(driver.rounds)

    def disk_variants(self):
        """Ours without the memory tier, in all forms that there are."""
        forms = ["disk"] + (["length"] if "length" in self.variants else [])
        return [ours(form) for form in forms + (["sidecar"] if self.scale.is_full else [])]

    def each_round(self, systems):
        for number in self.rounds:
            for system in self.driver.shuffled(systems):
                yield number, system

    def fill(self, name, systems, **options):
        """The directories of all systems by system."""
        self.driver.fill_all(self.place, systems, name, **options)
        self.place.sync()
        return {system: self.driver.fill(self.place, system, name, **options) for system in systems}

    # ---- Reads ----

    def read(self, workload, systems, keys, procs, warm_ms):
        for size in SIZES:
            n, name = keys[size], "%s-%d" % (workload, size)
            directories = self.fill(name, systems, size=size, n=n)
            for number, system in self.each_round(systems):
                for count in procs:
                    self.driver.measure(
                        self.place, system, "get_hit", directories[system], workload, number, count,
                        size=size, n=n, secs=self.scale.slice, warm_ms=warm_ms)
            self.driver.drop(self.place, name)

    def w1(self):
        """A hit on disk."""
        peers = self.peers.pick("lmdb", "rocksdb", "sqlite", "python-diskcache", "cachelib", "cacache") if self.scale.is_full else []
        self.read("W1", [LIMIT, *self.disk_variants(), *peers], KEYS, (1, 4), self.scale.warm_ms)

    def w1m(self):
        """A hit with the default configuration, where the working set fits in memory."""
        peers = self.peers.pick("lmdb", "rocksdb", "sqlite", "python-diskcache")
        self.read("W1M", [LIMIT, ours("memory"), *peers], HELD_KEYS, (1,), HOLDING)

    def w4(self):
        """A miss: of keys that were never there, and of some that were."""
        systems = [LIMIT, LIMIT_ONCE, ours("disk"), ours("removed"), *self.peers.pick("lmdb", "rocksdb", "sqlite", "python-diskcache")]
        size, n = 4 * KIB, 20_000 if self.scale.is_full else 8_000
        directories = self.fill("W4", systems, size=size, n=n)
        for number, system in self.each_round(systems):
            for count in (1, 4) if self.scale.is_full else (1,):
                self.driver.measure(
                    self.place, system, "get_miss", directories[system], "W4", number, count, size=size, n=n, secs=self.scale.slice)
        self.driver.drop(self.place, "W4")

    # ---- Writes ----

    def writers(self):
        names = ("lmdb", "rocksdb", "sqlite", "python-diskcache", "cachelib", "cacache") if self.scale.is_full else ("sqlite", "python-diskcache")
        return [LIMIT, ours("disk"), *self.peers.pick(*names)]

    def busy_writers(self):
        """Those whose several processes are measured: the others take long and say little."""
        return [LIMIT, ours("disk"), *self.peers.pick("lmdb", "sqlite", "python-diskcache")]

    def put_new(self, workload, systems, size, n, procs=1):
        for number, system in self.each_round(systems):
            directory = self.place.new(workload)
            self.place.sync()
            self.driver.measure(
                self.place, system, "put_new", directory, workload, number, procs, size=size, n=n, cap=self.scale.cap)
            self.place.remove(directory)

    def w2(self):
        """Puts of new keys."""
        for size in SIZES if self.scale.is_full else SIZES[1:]:
            n = min(self.scale.put_keys, KEYS[size] // (1 if self.scale.is_full else 4))
            self.put_new("W2", self.writers(), size, n)
            if not self.scale.is_full:
                continue
            self.put_new("W2", self.busy_writers(), size, n, procs=4)
            if size in (4 * KIB, 64 * KIB):
                synced = [LIMIT, ours("disk"), *self.peers.pick("rocksdb", "sqlite", "python-diskcache")]
                self.put_new("W2", [system.with_sync("on") for system in synced], size, 400)

    def w2b(self):
        """Puts that are published in the background; as many as may wait."""
        self.put_new("W2B", [ours("behind")], 4 * KIB, min(self.scale.put_keys, 8_000))

    def w3(self):
        """Other bytes for keys that are there."""
        for size in (4 * KIB, 64 * KIB) if self.scale.is_full else (4 * KIB,):
            n, name = min(self.scale.put_keys, KEYS[size]), "W3-%d" % size
            directories = self.fill(name, self.writers(), size=size, n=n)
            for number, system in self.each_round(self.writers()):
                for count in (1, 4) if self.scale.is_full and system in self.busy_writers() else (1,):
                    self.place.sync()
                    self.driver.measure(
                        self.place, system, "put_over", directories[system], "W3", number, count, size=size, n=n, cap=self.scale.cap)
            self.driver.drop(self.place, name)

    # ---- Both ----

    def w5(self):
        """Nine gets to a put, keys by Zipf's law, the default configuration."""
        size, n = 4 * KIB, self.scale.mixed_keys
        always = [LIMIT, ours("memory"), *self.peers.pick("sqlite", "python-diskcache")]
        alone = [ours("behind"), *self.peers.pick("sqlite-lru", "python-diskcache-lru", "lmdb")]
        if self.scale.is_full:
            always += alone + [ours("disk"), *self.peers.pick("rocksdb", "cachelib", "cacache")]
            alone = []
        directories = self.fill("mixed", always + alone, size=size, n=n)
        for number in self.rounds:
            for procs in (1, 2, 4, 8):
                for system in self.driver.shuffled(always + (alone if procs == 1 else [])):
                    self.place.sync()
                    self.driver.measure(
                        self.place, system, "mixed", directories[system], "W5", number, procs,
                        size=size, n=n, secs=self.scale.mixed_slice, warm_ms=self.scale.mixed_warm_ms)
        self.driver.drop(self.place, "mixed")

    def w7(self):
        """Opening a directory, and the first get."""
        peers = self.peers.pick("lmdb", "sqlite", "python-diskcache") if self.scale.is_full else []
        systems = [LIMIT, ours("memory"), *peers]
        for n in (1_000, self.scale.open_entries):
            directories = self.fill("W7", systems, size=4 * KIB, n=n)
            for number, system in self.each_round(systems):
                self.driver.measure(self.place, system, "open_first", directories[system], "W7", number, size=4 * KIB, n=n)
            self.driver.drop(self.place, "W7")

    # ---- Collection ----

    def w6(self):
        """A collection with nothing to do, and one that trims to half."""
        n, size = self.scale.gc_entries, 4 * KIB
        systems = [LIMIT, ours("disk"), *self.peers.pick("sqlite", "python-diskcache")]
        jobs = [lambda number, system=system: self.collect(system, number, n, size) for system in systems]
        jobs.append(lambda number: self.find(number, n, size))
        if self.scale.is_full and "ccache" not in self.peers.absent:
            jobs.append(lambda number: self.ccache(number, n, size))
        for number in self.rounds:
            for job in self.driver.shuffled(jobs):
                job(number)

    def collect(self, system, number, n, size):
        directory = self.driver.fill(self.place, system, "W6", op="gcfill", size=size, n=n)
        self.place.sync()
        for op in ("gc_scan", "gc"):
            self.driver.measure(self.place, system, op, directory, "W6", number, size=size, n=n, timeout=600)
        self.driver.drop(self.place, "W6")

    def find(self, number, n, size):
        directory = self.driver.fill(self.place, LIMIT, "W6", op="gcfill", size=size, n=n)
        self.place.sync()
        scan = ["find", directory, "-type", "f", "-amin", "+60000"]
        trim = ["find", directory, "-type", "f", "-amin", "+60", "-delete"]
        for op, command in (("gc_scan", scan), ("gc", trim)):
            self.outside("find", op, command, directory, number, n, size)
        self.driver.drop(self.place, "W6")

    def ccache(self, number, n, size):
        directory = self.place.new("W6-ccache")
        command = self.driver.command(LIMIT, "gcfill", directory, size=size, n=n)
        command[command.index("--variant") + 1] = "ccache"
        status, _, errors = self.driver.children.run(command)
        if status:
            return self.driver.results.failed(errors, system="ccache", workload="W6", op="gcfill", round=number)
        self.place.sync()
        environment = dict(os.environ, CCACHE_DIR=directory, CCACHE_NOCOMPRESS="1")
        self.outside("ccache", "gc_scan", ["ccache", "-M", "100G", "--cleanup"], directory, number, n, size, environment)
        # ccache leaves that many kilobytes.
        self.driver.children.run(["ccache", "-M", "%dk" % (n * size // 2 // 1000)], env=environment)
        self.outside("ccache", "gc", ["ccache", "--cleanup"], directory, number, n, size, environment)
        self.place.remove(directory)

    def outside(self, name, op, command, directory, number, n, size, environment=None):
        """Times a program that does not speak the protocol."""
        before, begin = count(directory), time.perf_counter()
        status, _, errors = self.driver.children.run(command, env=environment)
        seconds = time.perf_counter() - begin
        what = dict(system=name, workload="W6", op=op, variant="", fs=self.place.label, round=number)
        if status:
            return self.driver.results.failed(errors or "status %d" % status, **what)
        self.driver.results.write(
            **what, sync="default", size=size, n=n, procs=1, threads=1, ops=before, entries=before, errs=0,
            removed=before - count(directory), seconds=seconds, entries_per_s=before / seconds,
            ops_per_s=before / seconds, p50_ns=seconds * 1e9 / before)

    # ---- The rest ----

    def w8(self):
        """Eight processes want one key at once."""
        systems = [ours("memory"), *(self.peers.pick("python-diskcache", "cachelib") if self.scale.is_full else [])]
        for number, system in self.each_round(systems):
            directory = self.place.new("W8")
            self.driver.measure(
                self.place, system, "stampede", directory, "W8", number, 8, extra={"compute_ms": COMPUTATION},
                size=4 * KIB, compute_ms=COMPUTATION)
            self.place.remove(directory)

    def w10(self):
        """Hits in memory, with one thread and with two."""
        # The files are read once and then no more.
        directory, n = self.fastest.new("W10"), 100_000
        programs = {"limit": "memhit"} | ({} if "nscache" in self.peers.absent else {"nscache": "nscache"})
        for number in self.rounds:
            # The limit does little but wait for memory, which takes up to nine times as long in one run as in another,
            # most likely as virtual machines share a processor's cache: thrice a round, of which the median counts.
            for name in self.driver.shuffled([*programs, "ours", "limit", "limit"]):
                command = [os.path.join(BINARIES, programs[name])] if name in programs else [ADAPTER]
                command += ["memhit", "--n", str(n), "--secs", str(self.scale.hit_seconds), "--seed", str(number + 1)]
                if name == "ours":
                    command += ["--dir", directory, "--variant", "memory"]
                self.driver.lines(command, number, {"fs": "-", "n": n})
        self.fastest.remove(directory)

    def w11(self):
        """A command from its start to its end."""
        directory = self.place.new("W11")
        value = directory + ".value"
        with open(value, "wb") as file:
            file.write(os.urandom(4 * KIB))
        environment = dict(os.environ, DISKCACHE_DIR=directory)
        self.driver.children.run([COMMANDS["static"], "put", "key", value], env=environment)
        objects = [os.path.join(root, name) for root, _, names in os.walk(os.path.join(directory, "objects")) for name in names]
        commands = {("ours", variant): [program, "get", "key"] for variant, program in COMMANDS.items()} | {("cat", ""): ["cat", *objects]}
        for number in self.rounds:
            for name, variant in self.driver.shuffled(commands):
                command = [os.path.join(BINARIES, "spawn"), str(self.scale.spawns), name, *commands[name, variant]]
                extra = {"variant": variant, "fs": self.place.label, "n": 1, "sync": "default"}
                self.driver.lines(command, number, extra, env=environment)
        self.place.remove(directory)
        os.unlink(value)

    def run(self, names):
        for name in names:
            begin, filling = time.monotonic(), self.driver.filling_seconds
            getattr(self, name.lower())()
            times = time.monotonic() - begin, self.driver.filling_seconds - filling
            log("%s on %s: %.1f s, of which filling %.1f s" % (name, self.place.label, *times))


NAMES = ["W1", "W1M", "W2", "W2B", "W3", "W4", "W5", "W6", "W7", "W8", "W10", "W11"]
# On tmpfs, too; the others say the same there.
TMPFS_NAMES = ["W1", "W1M", "W2", "W3", "W4", "W5", "W6"]


def count(directory):
    return sum(len(files) for _, _, files in os.walk(directory))
