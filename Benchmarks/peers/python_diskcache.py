# SPDX-License-Identifier: Apache-2.0
"""python-diskcache. Variants: none = the defaults (evicts the least recently stored), lru = notes each access.

sync: default = synchronous=NORMAL as by default, off = OFF, on = FULL.
"""

import random
import time

import diskcache
import harness

SYNCHRONOUS = {"off": 0, "default": 1, "on": 2}


class Store:
    def __init__(self, a):
        self.a = a

    def open(self, **settings):
        settings.setdefault("sqlite_synchronous", SYNCHRONOUS[self.a.sync])
        if self.a.variant == "lru":
            settings.setdefault("eviction_policy", "least-recently-used")
        settings.setdefault("size_limit", 2**36)
        self.cache = diskcache.Cache(self.a.dir, timeout=60, **settings)
        self.get, self.put = self.cache.get, self.cache.set

    def close(self):
        self.cache.close()

    def stampede(self, compute, key):
        """Its recipe for computing once: a lock in the cache."""
        with diskcache.Lock(self.cache, "lock:" + key):
            value = self.cache.get(key)
            if value is None:
                value = compute()
                self.cache.set(key, value)
            return value

    def op_gcfill(self):
        """All keys, used last in random order."""
        a = self.a
        self.open(sqlite_synchronous=0, eviction_policy="least-recently-used", cull_limit=0)
        values, ranks = harness.Values(a.size), list(range(a.n))
        random.Random(77).shuffle(ranks)
        with self.cache.transact():
            for i in range(a.n):
                self.cache.set(harness.key(i), values[i])
            for i in range(a.n):
                self.cache._sql("UPDATE Cache SET access_time = ? WHERE key = ?", (1.7e9 + ranks[i], harness.key(i)))
        self.close()

    def collect(self, collect):
        before = len(self.cache)
        harness.handshake(self.a)
        t0 = time.perf_counter()
        collect()
        seconds = time.perf_counter() - t0
        harness.report_gc(self.a, before, before - len(self.cache), seconds)
        self.close()

    def op_gc(self):
        """Trims to a share of the volume, least recently used first."""
        self.open(eviction_policy="least-recently-used", cull_limit=10)
        self.cache.reset("size_limit", int(self.cache.volume() * self.a.keep))
        self.collect(self.cache.cull)

    def op_gc_scan(self):
        """With nothing to do: below the limit and nothing expired."""
        self.open()
        self.collect(lambda: (self.cache.cull(), self.cache.expire()))


harness.main("python-diskcache", Store)
