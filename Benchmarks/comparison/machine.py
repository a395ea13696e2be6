# SPDX-License-Identifier: Apache-2.0
"""What the results were measured on, and with what."""

import json
import os
import platform
import re
import subprocess
import sys
import time

from .session import BENCHMARKS, PACKAGES, output


def first(pattern, text):
    match = re.search(pattern, text, re.MULTILINE)
    return match.group(1).strip() if match else None


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def python_version(package):
    code = "import importlib.metadata as m; print(m.version(%r))" % package
    environment = dict(os.environ, PYTHONPATH=PACKAGES)
    result = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return result.stdout.strip() or None


def library_version(header, *names):
    """The numbers that a header defines, joined by dots."""
    text = read(os.path.join("/usr/include", header))
    numbers = [first(r"#define\s+%s\s+\"?([0-9.]+)" % name, text) for name in names]
    return ".".join(numbers) if all(numbers) else None


def versions(absent, cacache):
    found = {
        "gcc": output("gcc", "-dumpfullversion"),
        "openssl": first(r"OpenSSL (\S+)", output("openssl", "version")),
        "sqlite": library_version("sqlite3.h", "SQLITE_VERSION"),
        "lmdb": library_version("lmdb.h", "MDB_VERSION_MAJOR", "MDB_VERSION_MINOR", "MDB_VERSION_PATCH"),
        "rocksdb": library_version("rocksdb/version.h", "ROCKSDB_MAJOR", "ROCKSDB_MINOR", "ROCKSDB_PATCH"),
        "python": platform.python_version(),
        "python-diskcache": python_version("diskcache"),
        "cachelib": python_version("cachelib"),
        "ccache": first(r"ccache version (\S+)", output("ccache", "--version")),
        "coreutils": first(r"(\d[\d.]+)$", output("cat", "--version").split("\n")[0]),
        "findutils": first(r"(\d[\d.]+)$", output("find", "--version").split("\n")[0]),
    }
    if cacache:
        found["node"] = output("node", "--version").lstrip("v")
        found["cacache"] = json.loads(read(os.path.join(cacache, "package.json")) or "{}").get("version")
    return {name: version for name, version in found.items() if version and name not in absent}


def git(*arguments):
    return output("git", "-C", BENCHMARKS, *arguments)


def describe(mode, rounds, places, absent, cacache, notes):
    """The fields of the record that the results begin with."""
    system = read("/etc/os-release")
    memory = first(r"MemTotal:\s+(\d+)", read("/proc/meminfo"))
    commit = git("rev-parse", "--short", "HEAD")
    return dict(
        kind="machine", format=1, date=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        commit=commit or None, dirty=bool(git("status", "--porcelain")) if commit else None, mode=mode, rounds=rounds,
        cpu=first(r"model name\s*:\s*(.+)", read("/proc/cpuinfo")) or platform.machine(), cores=os.cpu_count(),
        memory_bytes=int(memory) * 1024 if memory else None, kernel="Linux " + platform.release(),
        os=first(r'PRETTY_NAME="?([^"\n]+)', system), swift=first(r"Swift version (\S+)", output("swift", "--version")),
        load_before=list(os.getloadavg()), file_systems={place.label: place.description() for place in places},
        versions=dict(ours=commit, **versions(absent, cacache)), notes=notes)
