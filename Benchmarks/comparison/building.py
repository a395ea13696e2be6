# SPDX-License-Identifier: Apache-2.0
"""Builds us, the limits and the peers; installs what is missing where it may."""

import os
import shutil
import subprocess
import sys
import threading

from .session import BENCHMARKS, BINARIES, IS_ROOT, PACKAGES, STATIC, log, output

PEERS = os.path.join(BENCHMARKS, "peers")
# Program: its libraries, and the package of Debian that has them.
IN_C = {
    "limit": (["-lcrypto"], "libssl-dev"),
    "memhit": ([], "libc6-dev"),
    "spawn": ([], "libc6-dev"),
    "sqlite": (["-lsqlite3"], "libsqlite3-dev"),
    "lmdb": (["-llmdb"], "liblmdb-dev"),
    "rocksdb": (["-lrocksdb"], "librocksdb-dev"),
}
IN_PYTHON = {"python-diskcache": "diskcache", "cachelib": "cachelib"}


class Failure(Exception):
    """Without this there is nothing to compare."""


class Installer:
    """Packages of Debian, for root only; the lists are brought up to date once."""

    def __init__(self):
        self.is_updated = False

    def install(self, *packages):
        """Nothing where they are installed then, else why not."""
        if not IS_ROOT:
            return "%s is missing, and only root can install it" % " ".join(packages)
        if not shutil.which("apt-get"):
            return "%s is missing, and there is no apt-get" % " ".join(packages)
        log("installing", *packages)
        environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        if not self.is_updated:
            subprocess.run(["apt-get", "update", "-qq"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
            self.is_updated = True
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
        result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
        return "apt-get can't install %s" % " ".join(packages) if result.returncode else None


def compile_c(name, libraries):
    """Nothing, or what the compiler says."""
    command = ["gcc", "-O2", "-o", os.path.join(BINARIES, name), os.path.join(PEERS, name + ".c"), *libraries, "-lpthread", "-lm"]
    try:
        result = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError:
        return "gcc is not installed"
    errors = [line for line in result.stderr.split("\n") if "error" in line or "cannot find" in line]
    return (errors or [result.stderr])[0].strip() if result.returncode else None


def build_c(installer, absent):
    for name, (libraries, package) in IN_C.items():
        problem = compile_c(name, libraries)
        if problem:
            problem = installer.install("gcc", "libc6-dev", package) or compile_c(name, libraries)
        if problem and name in ("limit", "memhit", "spawn"):
            raise Failure("build peers/%s.c: %s" % (name, problem))
        if problem:
            absent[name] = problem


def build_nscache(absent):
    source, binary = os.path.join(PEERS, "nscache.swift"), os.path.join(BINARIES, "nscache")
    if os.path.exists(binary) and os.path.getmtime(binary) > os.path.getmtime(source):
        return
    result = subprocess.run(["swiftc", "-swift-version", "6", "-O", "-o", binary, source], stderr=subprocess.PIPE, text=True)
    if result.returncode:
        absent["nscache"] = result.stderr.strip().split("\n")[0]


def install_python(installer, absent):
    """Into a folder of ours, which needs no root."""
    for system, package in IN_PYTHON.items():
        check = [sys.executable, "-c", "import %s" % package]
        environment = dict(os.environ, PYTHONPATH=PACKAGES)
        if subprocess.run(check, env=environment, stderr=subprocess.DEVNULL).returncode == 0:
            continue
        if not output(sys.executable, "-m", "pip", "--version"):
            problem = installer.install("python3-pip")
            if problem:
                absent[system] = problem
                continue
        log("installing", package)
        command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", PACKAGES, package]
        result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if result.returncode:
            absent[system] = "pip can't install %s: %s" % (package, result.stderr.strip().split("\n")[-1])


def find_cacache(absent):
    """The folder of npm's cache; nothing where there is no npm."""
    root = output("npm", "root", "-g") if shutil.which("npm") and shutil.which("node") else ""
    for path in (os.path.join(root, "npm/node_modules/cacache"), "/usr/share/nodejs/cacache"):
        if root and os.path.isdir(path):
            return path
    absent["cacache"] = "there is no node with npm"
    return None


def build_swift(product, *options):
    command = ["swift", "build", "-c", "release", "--product", product, *options]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode:
        raise Failure("build %s:\n%s" % (product, result.stdout[-3000:]))


def build_ours():
    for product in ("adapter", "diskcache"):
        build_swift(product, "--package-path", BENCHMARKS)


def build_static():
    """The command as README says to install it; a build of its own, for its modules are compiled differently."""
    build_swift(
        "diskcache", "--package-path", os.path.dirname(BENCHMARKS), "--scratch-path", STATIC, "-Xswiftc", "-static-executable")


def build(is_full, with_command):
    """Builds all, the static command only where asked; what is left out and why by system, and where cacache is."""
    if not shutil.which("swift"):
        raise Failure("there is no swift: see https://www.swift.org/install")
    os.makedirs(BINARIES, exist_ok=True)
    absent, failures = {}, []

    def others():
        # The compiler of Swift leaves one processor idle most of the time.
        try:
            installer = Installer()
            build_c(installer, absent)
            install_python(installer, absent)
            build_nscache(absent)
            if is_full and not shutil.which("ccache"):
                problem = installer.install("ccache")
                if problem:
                    absent["ccache"] = problem
        except Failure as failure:
            failures.append(failure)

    def command():
        try:
            build_static()
        except Failure as failure:
            failures.append(failure)

    log("building: us in release, limits, peers")
    threads = [threading.Thread(target=work) for work in [others] + ([command] if with_command else [])]
    for thread in threads:
        thread.start()
    try:
        build_ours()
    finally:
        for thread in threads:
            thread.join()
    log("built")
    if failures:
        raise failures[0]
    return absent, find_cacache(absent) if is_full else None
