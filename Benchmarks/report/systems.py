# SPDX-License-Identifier: Apache-2.0
"""What the systems are called and in which order they are listed: systems.json."""

import json
import os

WRITES = ("put_new", "put_over", "mixed")

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "systems.json"), encoding="utf-8") as file:
    KNOWN = json.load(file)
ORDER = list(KNOWN)


def name(system, variant=""):
    """The entry of systems.json: that of the variant if it has one."""
    both = f"{system}/{variant}"
    return both if variant and both in KNOWN else system


def kind(system):
    """ "ours", "limit" or "peer"; what is not listed is a peer."""
    return KNOWN.get(system, {}).get("kind", "peer")


def is_peer(row):
    return kind(row["system"]) == "peer"


def label(system, variant="", sync="default", op=""):
    """As written in tables and plots, with the mode of its writes where that is not what a reader expects."""
    entry = KNOWN.get(name(system, variant), {})
    text = entry.get("label", name(system, variant) if not variant else f"{system}, {variant}")
    modes = {**KNOWN.get(system, {}).get("sync", {}), "on": "fsync"}
    if op in WRITES:
        modes = {**modes, **KNOWN.get(system, {}).get("writes", {})}
        return f"{text} ({modes[sync]})" if sync in modes else text
    return f"{text} (fsync)" if sync == "on" else text


def waits(system, sync, op):
    """Whether a write in this mode returns only when the medium has it."""
    writes = KNOWN.get(system, {}).get("writes", {})
    return op in WRITES and (sync == "on" or writes.get(sync) == "fsync")


def preferred_sync(system, modes, op):
    """The one mode of several that plots show: the default, but for writes none that waits for the disk."""
    wanted = ("off", "default", "on") if waits(system, "default", op) else ("default", "off", "on")
    return next(mode for mode in wanted if mode in modes)


def order(group):
    """The key for sorting (system, variant, sync)."""
    system, variant, sync = group
    known = name(system, variant)
    place = ORDER.index(known) if known in ORDER else len(ORDER)
    return (place, system, variant, {"default": 0, "off": 1}.get(sync, 2))


def descriptions(groups):
    """(label, what) of the listed ones that have a description, in order."""
    names = dict.fromkeys(name(system, variant) for system, variant, _ in sorted(groups, key=order))
    return [(KNOWN[one]["label"], KNOWN[one]["what"]) for one in names if "what" in KNOWN.get(one, {})]
