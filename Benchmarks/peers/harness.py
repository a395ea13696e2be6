# SPDX-License-Identifier: Apache-2.0
"""What the adapters in Python share: options, timed loops and the result line of the adapter protocol."""

import argparse
import gc
import itertools
import json
import random
import resource
import struct
import sys
import time

now = time.perf_counter_ns  # CLOCK_MONOTONIC on Linux
DRAWS = 1 << 16


def bucket(v):
    if v < 64:
        return v
    e = v.bit_length() - 1
    return 2303 if e > 40 else (e - 5) * 64 + ((v >> (e - 6)) & 63)


def key(i):
    return "user:%08d/thumb" % i


def parse(system):
    p = argparse.ArgumentParser()
    p.add_argument("op")
    for name, default in (("dir", "data/x"), ("variant", ""), ("sync", "default"), ("system", system), ("workload", "")):
        p.add_argument("--" + name, default=default)
    for name, default in (("size", 4096), ("n", 20000), ("procs", 1), ("proc", 0), ("threads", 1), ("seed", 1), ("compute-ms", 200), ("warm-ms", 300)):
        p.add_argument("--" + name, type=int, default=default)
    for name, default in (("secs", 1.0), ("cap", 30.0), ("keep", 0.5)):
        p.add_argument("--" + name, type=float, default=default)
    p.add_argument("--handshake", action="store_true")
    return p.parse_args()


def handshake(a):
    """Says that all is prepared, and waits until the driver lets all workers go at once."""
    gc.collect()
    if a.handshake:
        print("READY", flush=True)
        if not sys.stdin.readline():
            sys.exit(3)


class Values:
    """64 values made beforehand; that of key i has i % 64 in its first bytes."""

    def __init__(self, size):
        noise = random.Random(12345).randbytes(size)
        self.values = [struct.pack("<Q", j) + noise[8:] for j in range(64)]
        self.size = size

    def __getitem__(self, i):
        return self.values[i & 63]

    def is_right(self, value, i):
        return len(value) == self.size and value[:8] == self.values[i & 63][:8]


def head(a):
    return {k: getattr(a, k) for k in ("system", "workload", "op", "variant", "sync", "size", "procs", "proc", "threads")}


def write(a, **fields):
    print(json.dumps(dict(head(a), **fields)), flush=True)


class Run:
    """The times of one worker's operations, and what they found."""

    def __init__(self, a):
        self.a, self.times, self.hits, self.miss, self.errs = a, [], 0, 0, 0

    def begin(self):
        handshake(self.a)
        self.usage = resource.getrusage(resource.RUSAGE_SELF)
        self.t0 = self.t1 = now()
        return self.t0

    def check(self, values, value, i):
        if value is None:
            self.miss += 1
        elif values.is_right(value, i):
            self.hits += 1
        else:
            self.errs += 1

    def report(self):
        used, times = resource.getrusage(resource.RUSAGE_SELF), sorted(self.times)
        n, counts = len(times), {}
        for v in times:
            counts[bucket(v)] = counts.get(bucket(v), 0) + 1
        write(
            self.a, ops=n, errs=self.errs, hits=self.hits, miss=self.miss,
            p50_ns=times[n // 2] if n else 0, p99_ns=times[n * 99 // 100] if n else 0,
            mean_ns=sum(times) / max(1, n), ops_per_s=n / max(1e-9, (self.t1 - self.t0) / 1e9), t0=self.t0, t1=self.t1,
            ucpu=int((used.ru_utime - self.usage.ru_utime) * 1e9), scpu=int((used.ru_stime - self.usage.ru_stime) * 1e9),
            **({"hist": sorted(counts.items())} if self.a.handshake else {}))


def get(a, store, values):
    run, offset, order = Run(a), a.n if a.op == "get_miss" else 0, list(range(a.n))
    random.Random(a.seed * 131 + a.proc).shuffle(order)
    order = [i + offset for i in order]
    keys, get, is_right, record = [key(i) for i in order], store.get, values.is_right, run.times.append
    end = now() + a.warm_ms * 1_000_000
    for k in keys if not offset else []:
        get(k)
        if now() > end:
            break
    previous = run.begin()
    end, hits, miss = previous + int(a.secs * 1e9), 0, 0
    while previous < end:
        for i, k in zip(order, keys):
            value = get(k)
            t = now()
            record(t - previous)
            previous = t
            if value is None:
                miss += 1
            elif not offset and is_right(value, i):
                hits += 1
            if t >= end:
                break
    run.t1, run.hits, run.miss, run.errs = previous, hits, miss, len(run.times) - hits - miss
    run.report()


def put(a, store, values):
    run, order = Run(a), list(range(a.n))
    random.Random(a.seed * 131 + 999).shuffle(order)
    order = order[a.n * a.proc // a.procs: a.n * (a.proc + 1) // a.procs]
    pairs = [(key(i), values[i]) for i in order]
    put, record = store.put, run.times.append
    end = run.begin() + int(a.cap * 1e9)
    for k, value in pairs:
        start = now()
        put(k, value)
        run.t1 = now()
        record(run.t1 - start)
        if run.t1 >= end:
            break
    run.report()


def mixed(a, store, values):
    run, order, draw = Run(a), list(range(a.n)), random.Random(a.seed * 131 + a.proc)
    random.Random(424242).shuffle(order)
    weights = list(itertools.accumulate(1 / (i + 1) ** 0.99 for i in range(a.n)))
    order = draw.choices(order, cum_weights=weights, k=DRAWS)
    steps = [(i, key(i), draw.random() < 0.1) for i in order]
    get, put, check, record = store.get, store.put, run.check, run.times.append
    end = now() + a.warm_ms * 1_000_000
    for i, k, _ in steps[:a.n]:
        get(k)
        if now() > end:
            break
    previous = run.begin()
    end = previous + int(a.secs * 1e9)
    while previous < end:
        for i, k, writes in steps:
            if writes:
                put(k, values[i])
            else:
                check(values, get(k), i)
            t = now()
            record(t - previous)
            previous = t
            if t >= end:
                break
    run.t1 = previous
    run.report()


def open_first(a, store, values):
    i = a.seed * 7919 % a.n
    handshake(a)
    t0 = now()
    store.open()
    t1 = now()
    value = store.get(key(i))
    t2 = now()
    ok = int(value is not None and values.is_right(value, i))
    write(a, ops=1, open_ns=t1 - t0, first_get_ns=t2 - t1, p50_ns=t2 - t0, ok=ok)


def fill(a, store, values):
    order = list(range(a.n))
    random.Random(5).shuffle(order)
    store.open()
    t0 = now()
    for i in order:
        store.put(key(i), values[i])
    store.close()
    write(a, entries=a.n, seconds=(now() - t0) / 1e9)


def stampede(a, store, values):
    computed = []

    def compute():
        time.sleep(a.compute_ms / 1e3)
        computed.append(1)
        return values[0]

    store.open()
    handshake(a)
    t0 = now()
    value = store.stampede(compute, "stampede")
    t1 = now()
    write(a, computed=len(computed), errs=int(not values.is_right(value, 0)), wall_ns=t1 - t0, t0=t0, t1=t1)


def report_gc(a, entries, removed, seconds):
    rate = entries / seconds
    write(a, ops=entries, entries=entries, removed=removed, errs=0, seconds=seconds, entries_per_s=rate, ops_per_s=rate,
          p50_ns=seconds * 1e9 / max(1, entries))


def main(system, Store):
    """Runs what the command line asks for; an operation that only this store has is its method op_NAME."""
    a = parse(system)
    store = Store(a)
    if hasattr(store, "op_" + a.op):
        return getattr(store, "op_" + a.op)()
    values = Values(a.size)
    whole = {"fill": fill, "open_first": open_first, "stampede": stampede}
    if a.op in whole:
        return whole[a.op](a, store, values)
    timed = {"get_hit": get, "get_miss": get, "put_new": put, "put_over": put, "mixed": mixed}
    if a.op not in timed:
        sys.exit("%s: no operation %s" % (system, a.op))
    store.open()
    timed[a.op](a, store, values)
    store.close()
