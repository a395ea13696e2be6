# SPDX-License-Identifier: Apache-2.0
"""Colours and markers. The hues are near those of Okabe and Ito, which all kinds of colour vision tell apart, darkened
for a white ground and lightened for a dark one; every system also has a marker of its own."""

import systems

# style: (on white, on dark, marker, hollow)
STYLES = {
    "ours": ("#c8430a", "#ff8a4c", "circle", False),
    "ours-disk": ("#c8430a", "#ff8a4c", "circle", True),
    "ours-other": ("#c8430a", "#ff8a4c", "diamond", True),
    "limit": ("#57606a", "#b1bac4", "bar", False),
    "lmdb": ("#0063a6", "#58aef0", "square", False),
    "rocksdb": ("#3d8fc0", "#8fd0f7", "triangle", False),
    "sqlite": ("#00795a", "#35c99d", "diamond", False),
    "sqlite-lru": ("#00795a", "#35c99d", "diamond", True),
    "python-diskcache": ("#a8477e", "#e79fc8", "down", False),
    "python-diskcache-lru": ("#a8477e", "#e79fc8", "down", True),
    "python-diskcache-fanout": ("#a8477e", "#e79fc8", "plus", False),
    "cachelib": ("#8a6d00", "#e3bb3c", "square", True),
    "cacache": ("#6b4fa0", "#b9a2ec", "triangle", True),
    "swift-foundation": ("#7a5230", "#d0a27a", "cross", False),
    "nscache": ("#7a5230", "#d0a27a", "square", False),
    "swift-dictionary": ("#00795a", "#35c99d", "diamond", False),
    "other": ("#57606a", "#b1bac4", "cross", False),
}
OURS = {"memory": "ours", "": "ours", "disk": "ours-disk"}

# What is drawn with neither colour of a system: (light, dark) of each CSS property.
LIGHT = {"ground": "#ffffff", "frame": "#d0d7de", "grid": "#e8ebef", "text": "#1f2328", "quiet": "#59636e"}
DARK = {"ground": "#0d1117", "frame": "#3d444d", "grid": "#21262d", "text": "#f0f6fc", "quiet": "#9198a1"}


def style(system, variant):
    if system == "ours":
        return OURS.get(variant, "ours-other")
    for name in (f"{system}-{variant}", system):
        if name in STYLES:
            return name
    return "limit" if systems.kind(system) == "limit" else "other"


def rules(ground, colours):
    """The rules of one mode; colours are (style, colour)."""
    parts = [
        f".ground{{fill:{ground['ground']};stroke:{ground['frame']}}}",
        f".grid{{stroke:{ground['grid']}}}.frame{{stroke:{ground['frame']}}}",
        f"text{{fill:{ground['text']}}}.quiet{{fill:{ground['quiet']}}}",
    ]
    parts += [f".{name}{{stroke:{colour};fill:{colour}}}" for name, colour in colours]
    parts.append(f".hollow{{fill:{ground['ground']}}}")
    return "".join(parts)


def css(used):
    """The style sheet: light unless the reader's system is dark. The ground is drawn, so a page of the other mode
    shows a readable card."""
    light = rules(LIGHT, [(name, STYLES[name][0]) for name in used])
    dark = rules(DARK, [(name, STYLES[name][1]) for name in used])
    fixed = (
        "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}"
        ".heading{font-size:16px;font-weight:600}.panel{font-size:13px;font-weight:600}.small{font-size:11px}"
    )
    late = ".line{fill:none}.leader{fill:none;opacity:.45}"
    return f"{fixed}{light}{late}@media (prefers-color-scheme:dark){{{dark}{late}}}"
