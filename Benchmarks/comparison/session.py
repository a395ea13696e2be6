# SPDX-License-Identifier: Apache-2.0
"""What all parts of a comparison share: where its files are, its child processes, its log and its results."""

import json
import os
import signal
import subprocess
import sys
import time

BENCHMARKS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(BENCHMARKS, ".out")
BINARIES = os.path.join(OUT, "bin")
PACKAGES = os.path.join(OUT, "python")
RELEASE = os.path.join(BENCHMARKS, ".build", "release")
# The command as README says to install it: without shared libraries.
STATIC = os.path.join(OUT, "static")
IS_ROOT = os.geteuid() == 0

BEGIN = time.monotonic()


def log(*words):
    print("%6.1f s " % (time.monotonic() - BEGIN), *words, file=sys.stderr, flush=True)


def output(*command, timeout=60):
    """What a command prints; nothing where it fails."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=timeout).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


class Interrupted(Exception):
    """A signal asked for the end."""


def end_on_signals():
    """From now on SIGINT, SIGTERM and SIGHUP unwind, so that what was made is removed again."""
    def unwind(number, frame):
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(signum, signal.SIG_IGN)
        raise Interrupted(signal.Signals(number).name)
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, unwind)


class Results:
    """One JSON object per line, in the order of measuring."""

    def __init__(self, path):
        self.path = path
        self.file = open(path, "w")

    def write(self, **record):
        record = {name: value for name, value in record.items() if value is not None}
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    def absent(self, system, why):
        log("without %s: %s" % (system, why))
        self.write(kind="absent", system=system, why=why)

    def failed(self, why, **what):
        log("FAILED", " ".join(str(v) for v in what.values()), why)
        self.write(kind="failed", why=why[-400:], **what)


class Children:
    """The processes that run now."""

    def __init__(self):
        self.running = []
        self.has_ended = False

    def start(self, command, **settings):
        if self.has_ended:
            raise Interrupted("no more processes")
        child = subprocess.Popen(command, **settings)
        self.running.append(child)
        return child

    def run(self, command, timeout=900, **settings):
        """Runs a command to its end; its status, output and errors."""
        child = self.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)
        try:
            out, err = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            err += "killed after %d s" % timeout
        finally:
            self.forget(child)
        return child.returncode, out, err

    def forget(self, child):
        if child.poll() is None:
            child.kill()
            child.wait()
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass  # What it was told nobody reads any more.
        if child in self.running:
            self.running.remove(child)

    def end(self):
        """Ends all, and lets none start any more."""
        self.has_ended = True
        for child in list(self.running):
            self.forget(child)
