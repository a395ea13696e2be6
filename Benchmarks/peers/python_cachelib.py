# SPDX-License-Identifier: Apache-2.0
"""cachelib.FileSystemCache: a file per value, written beside and renamed; no fsync."""

import cachelib
import harness


class Store:
    def __init__(self, a):
        self.a = a

    def open(self):
        cache = cachelib.FileSystemCache(self.a.dir, threshold=0, default_timeout=0)
        self.get, self.put = cache.get, cache.set

    def close(self):
        pass

    def stampede(self, compute, key):
        """It has nothing for that."""
        value = self.get(key)
        if value is None:
            value = compute()
            self.put(key, value)
        return value


harness.main("cachelib", Store)
