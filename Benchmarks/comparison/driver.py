# SPDX-License-Identifier: Apache-2.0
"""Runs adapters: fills directories, starts workers, lets them go at once, adds up what they print."""

import json
import math
import os
import random
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor


def steal():
    with open("/proc/stat") as file:
        times = [int(word) for word in file.readline().split()[1:]]
    return times[7], sum(times[:8])


def middle(bucket):
    if bucket < 64:
        return float(bucket)
    exponent = bucket // 64 + 5
    width = 1 << (exponent - 6)
    return (1 << exponent) + (bucket % 64) * width + width / 2


def percentile(counts, share):
    rank, seen = max(1, math.ceil(share * sum(counts.values()))), 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if seen >= rank:
            return middle(bucket)
    return 0.0


class Failed(Exception):
    """A worker did not do what it was asked to."""


class Driver:
    def __init__(self, results, children, rounds):
        self.results, self.children, self.rounds = results, children, rounds
        # Another order of the systems each time, and in each round.
        self.random = random.Random()
        self.filled = {}
        self.filling_seconds = 0.0

    def shuffled(self, items):
        items = list(items)
        self.random.shuffle(items)
        return items

    def command(self, system, op, directory, **options):
        command = [*system.command, op, "--dir", directory, "--system", system.name, "--variant", system.variant, "--sync", system.sync]
        for name, value in options.items():
            command += ["--" + name.replace("_", "-"), str(value)]
        return command

    def settings(self, system):
        return {"env": system.environment} if system.environment else {}

    # ---- Filling ----

    def fill(self, place, system, name, op="fill", **options):
        """The directory of this name and store; filled once, nothing where that failed."""
        key = (place.path, name, system.store)
        if key not in self.filled:
            path = place.new("%s-%s" % (name, system.store))
            status, _, errors = self.children.run(self.command(system, op, path, **options), **self.settings(system))
            if status:
                self.results.failed(errors or "status %d" % status, system=system.name, workload=name, op=op, variant=system.variant, fs=place.label)
                path = None
            self.filled[key] = path
        return self.filled[key]

    def fill_all(self, place, systems, name, **options):
        """The same for several systems, as many at once as there are processors."""
        begin = time.monotonic()
        stores = {system.store: system for system in reversed(systems)}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            try:
                for future in [pool.submit(self.fill, place, system, name, **options) for system in stores.values()]:
                    future.result()
            except BaseException:
                # Else the pool waits until all are done.
                pool.shutdown(wait=False, cancel_futures=True)
                self.children.end()
                raise
        self.filling_seconds += time.monotonic() - begin

    def drop(self, place, name):
        """Removes what was filled under this name."""
        for key in [key for key in self.filled if key[:2] == (place.path, name)]:
            path = self.filled.pop(key)
            if path:
                place.remove(path)

    # ---- Measuring ----

    def measure(self, place, system, op, directory, workload, number, procs=1, timeout=180, extra=None, **options):
        """One record of all workers together; nothing where one failed, which is recorded too."""
        if directory is None:
            return None
        threads = procs if system.threads else options.pop("threads", 1)
        count = 1 if system.threads else procs
        what = dict(system=system.name, workload=workload, op=op, variant=system.variant, sync=system.sync,
                    fs=place.label, size=options.get("size"), n=options.get("n"), procs=procs, threads=1 if system.threads else threads, round=number)
        commands = [
            self.command(system, op, directory, workload=workload, procs=count, proc=index, threads=threads, seed=1 + number, **options) + ["--handshake"]
            for index in range(count)
        ]
        before = steal()
        try:
            lines = self.together(commands, timeout, self.settings(system))
        except (Failed, OSError, ValueError, subprocess.TimeoutExpired) as error:
            self.results.failed(str(error), **{name: value for name, value in what.items() if value is not None})
            return None
        after = steal()
        record = dict(what, **(extra or {}))
        if system.threads and procs > 1:
            record["mode"] = "threads"
        record.update(self.combine(lines, op))
        record["steal_pct"] = round(100 * (after[0] - before[0]) / max(1, after[1] - before[1]), 2)
        self.results.write(**record)
        return record

    def together(self, commands, timeout, settings):
        """Starts all, waits until all are ready, lets them go, and reads the line of each."""
        workers = []
        try:
            for command in commands:
                workers.append(self.children.start(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings))
            for worker in workers:
                line = worker.stdout.readline()
                if line.strip() != "READY":
                    raise Failed("not ready: %s %s" % (line.strip(), worker.stderr.read()[-300:]))
            for worker in workers:
                worker.stdin.write("GO\n")
                worker.stdin.flush()
            lines = []
            for worker in workers:
                out, errors = worker.communicate(timeout=timeout)
                if worker.returncode or not out.strip():
                    raise Failed("status %d: %s" % (worker.returncode, errors[-300:]))
                lines.append(json.loads(out.strip().split("\n")[-1]))
            return lines
        finally:
            for worker in workers:
                self.children.forget(worker)

    def combine(self, lines, op):
        """What all workers did together."""
        total = dict(errs=sum(line.get("errs", 0) for line in lines))
        if op in ("gc", "gc_scan", "ls", "open_first"):
            names = ("ops", "entries", "removed", "seconds", "entries_per_s", "ops_per_s", "p50_ns", "open_ns", "first_get_ns", "ok")
            total.update({name: lines[0][name] for name in names if name in lines[0]})
            return total
        begin, end = min(line["t0"] for line in lines), max(line["t1"] for line in lines)
        seconds = max(1e-9, (end - begin) / 1e9)
        if op == "stampede":
            return dict(total, ops=len(lines), computed=sum(line["computed"] for line in lines), wall_ms=seconds * 1e3)
        counts = {}
        for line in lines:
            for bucket, number in line["hist"]:
                counts[bucket] = counts.get(bucket, 0) + number
        ops = sum(counts.values())
        return dict(
            total, ops=ops, hits=sum(line["hits"] for line in lines), miss=sum(line["miss"] for line in lines),
            p50_ns=percentile(counts, 0.5), p99_ns=percentile(counts, 0.99),
            mean_ns=sum(line["mean_ns"] * line["ops"] for line in lines) / max(1, ops), ops_per_s=ops / seconds, seconds=seconds,
            cpu_ns_per_op=sum(line["ucpu"] + line["scpu"] for line in lines) / max(1, ops))

    def lines(self, command, number, extra, **settings):
        """Runs a program that measures by itself and prints records."""
        status, out, errors = self.children.run(command, **settings)
        if status:
            self.results.failed(errors or "status %d" % status, system=command[0], round=number, **extra)
        for line in out.split("\n"):
            if line.startswith("{"):
                self.results.write(**dict(json.loads(line), round=number, **extra))
