# SPDX-License-Identifier: Apache-2.0
"""What the runs said about the machine, as words."""

import re
import statistics


def first(results):
    """The first run's description; empty if the file has none."""
    return results.machines[0] if results.machines else {}


def date(results):
    """The days of the runs."""
    days = list(dict.fromkeys(one["date"][:10] for one in results.machines if "date" in one))
    return " and ".join(days)


def processor(results):
    one = first(results)
    cores = f"{one['cores']} cores" if "cores" in one else ""
    return ", ".join(part for part in (one.get("cpu", ""), cores) if part)


def short(results):
    """For a plot: the processor and the date."""
    return " · ".join(part for part in (processor(results), date(results)) if part)


def file_system(results, fs):
    """How a file system was made, or its label."""
    for one in results.machines:
        how = one.get("file_systems", {}).get(fs, {}).get("how")
        if how:
            return how.split(",")[0]
    return fs


def kernel(results):
    """Its number, without what its builder has added: "Linux 6.18.44"."""
    told = first(results).get("kernel", "")
    number = re.match(r"\S+ [0-9]+(\.[0-9]+)*", told)
    return number[0] if number else told


def clean_commit(results):
    """The commits that were measured as they are; where there are none, all of them."""
    clean = [one["commit"] for one in results.machines if "commit" in one and not one.get("dirty")]
    return ", ".join(dict.fromkeys(clean)) or commit(results)


def commit(results):
    """The commits that the runs measured."""
    named = [
        one["commit"] + (" with changes" if one.get("dirty") else "") for one in results.machines if "commit" in one
    ]
    return ", ".join(dict.fromkeys(named))


MODES = {"quick": "quick run", "full": "full run", "growth": "growth", "only": "part of the workloads"}


def mode(results):
    """How much was measured: "quick run", "full run"."""
    names = dict.fromkeys(run["mode"] for run in results.machines if "mode" in run)
    return ", ".join(MODES.get(name, name) for name in names)


def facts(results):
    """(name, value) for the head of RESULTS.md."""
    one = first(results)
    memory = f"{one['memory_bytes'] / (1 << 30):.0f} GiB" if "memory_bytes" in one else ""
    pairs = [
        ("date", date(results)),
        ("processor", processor(results)),
        ("memory", memory),
        ("kernel", one.get("kernel", "")),
        ("system", one.get("os", "")),
        (
            "file systems",
            "; ".join(
                f"{fs}: {told.get('how', told.get('type', ''))}" for fs, told in one.get("file_systems", {}).items()
            ),
        ),
        ("commit", commit(results)),
        ("Swift", one.get("swift", "")),
        ("versions", versions(results)),
        ("run", mode(results)),
        ("load before", ", ".join(map(str, one.get("load_before", [])))),
        ("CPU steal", steal(results)),
    ]
    return [(name, value) for name, value in pairs if value]


def steal(results):
    """How much of the processors other virtual machines took during the measurements."""
    shares = sorted(row["steal_pct"] for row in results.rows if "steal_pct" in row)
    if not shares:
        return ""
    most = f"95th percentile {shares[len(shares) * 95 // 100]:.2f} %, most {shares[-1]:.2f} %"
    return f"median {statistics.median(shares):.2f} %, {most}"


def versions(results):
    """The versions of what was compared with."""
    told = {name: version for one in results.machines for name, version in one.get("versions", {}).items()}
    return ", ".join(f"{name} {version}" for name, version in told.items() if name != "ours")
