# SPDX-License-Identifier: Apache-2.0
"""Who takes part: commands that speak the adapter protocol."""

import os
import sys
from dataclasses import dataclass, field, replace

from .building import PEERS
from .session import BINARIES, PACKAGES, RELEASE, STATIC, output

ADAPTER = os.path.join(RELEASE, "adapter")
# The command by variant: as README says to install it, and as `swift build` makes it.
COMMANDS = {"static": os.path.join(STATIC, "release", "diskcache"), "shared": os.path.join(RELEASE, "diskcache")}


@dataclass(frozen=True)
class System:
    name: str
    command: tuple
    variant: str = ""
    # Who shares a directory with whom: those of the same store.
    store: str = ""
    sync: str = "default"
    # Several processes are measured as threads of one.
    threads: bool = False
    environment: dict = field(default_factory=dict, compare=False)

    def with_sync(self, sync):
        return replace(self, sync=sync)


def ours(variant):
    store = variant if variant in ("sidecar", "removed") else "ours"
    return System("ours", (ADAPTER,), variant, store, "off")


def has_variant(variant):
    return variant in output(ADAPTER, "variants").split()


LIMIT = System("limit", (os.path.join(BINARIES, "limit"),), store="limit", sync="off")
# Asks for each key once, as those must be asked for that are remembered then.
LIMIT_ONCE = replace(LIMIT, variant="once")


class Peers:
    """The peers that are there, by name."""

    def __init__(self, absent, cacache):
        self.absent = absent
        python = dict(os.environ, PYTHONPATH=PACKAGES)
        self.all = {
            name: System(name, (os.path.join(BINARIES, name),), store=name, threads=name == "rocksdb")
            for name in ("sqlite", "lmdb", "rocksdb")
        }
        self.all["sqlite-lru"] = replace(self.all["sqlite"], variant="lru")
        # Without that each commit is synchronous, which no cache needs.
        self.all["lmdb"] = self.all["lmdb"].with_sync("off")
        script = (sys.executable, os.path.join(PEERS, "python_diskcache.py"))
        self.all["python-diskcache"] = System("python-diskcache", script, store="python-diskcache", environment=python)
        self.all["python-diskcache-lru"] = replace(
            self.all["python-diskcache"], variant="lru", store="python-diskcache-lru")
        script = (sys.executable, os.path.join(PEERS, "python_cachelib.py"))
        self.all["cachelib"] = System("cachelib", script, store="cachelib", environment=python)
        if cacache:
            environment = dict(os.environ, CACACHE=cacache)
            self.all["cacache"] = System(
                "cacache", ("node", os.path.join(PEERS, "cacache.js")), store="cacache", environment=environment)
        self.all = {name: peer for name, peer in self.all.items() if peer.name not in absent}

    def pick(self, *names):
        return [self.all[name] for name in names if name in self.all]
