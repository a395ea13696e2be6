# SPDX-License-Identifier: Apache-2.0
"""Line plots as SVG: panels side by side, labels at the lines' ends, readable on light and dark pages."""

import dataclasses
from xml.sax.saxutils import escape

import palette

WIDTH = 980
HEAD = 62
ROW = 15  # the least distance of two labels, in pixels


@dataclasses.dataclass
class Series:
    label: str
    style: str
    points: list  # (x, y), by x
    computed: list = dataclasses.field(default_factory=list)  # drawn dotted, without markers


@dataclasses.dataclass
class Panel:
    title: str
    x: object
    y: object
    series: list
    notes: list = dataclasses.field(default_factory=list)  # (style, text), in the upper left corner
    direct: bool = True  # labels at the lines' ends; else the notes say what is shown


@dataclasses.dataclass(frozen=True)
class Box:
    """Where a panel's plot is, in pixels."""

    left: float
    top: float
    width: float
    height: float

    def at(self, panel, point):
        x, y = point
        return (self.left + panel.x.place(x) * self.width, self.top + (1 - panel.y.place(y)) * self.height)

    @property
    def right(self):
        return self.left + self.width

    @property
    def bottom(self):
        return self.top + self.height


def text(x, y, words, kind="", anchor="start", turn=False):
    turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}{turned}>{escape(words)}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def path(points, kind, dash=""):
    steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    width = 2.6 if kind.startswith("ours") else 1.6
    dash = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path d="M{steps}" class="line {kind}" stroke-linejoin="round" stroke-width="{width}"{dash}/>'


SHAPES = {
    "square": "M-3.6-3.6H3.6V3.6H-3.6Z",
    "diamond": "M0-4.8L4.8 0L0 4.8L-4.8 0Z",
    "triangle": "M0-4.6L4.4 3.4H-4.4Z",
    "down": "M0 4.6L4.4-3.4H-4.4Z",
    "cross": "M-3.6-3.6L3.6 3.6M-3.6 3.6L3.6-3.6",
    "plus": "M0-4.6V4.6M-4.6 0H4.6",
    "bar": "M-4.4 0H4.4",
}


def marker(x, y, style):
    _, _, shape, hollow = palette.STYLES[style]
    kind = f"{style} hollow" if hollow else style
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="{kind}" stroke-width="1.8"/>'
    return f'<path d="{SHAPES[shape]}" transform="translate({x:.1f} {y:.1f})" class="{kind}" stroke-width="1.8"/>'


def spread(wanted, low, high):
    """Places as near as can be to the wanted ones, at least a row apart and between low and high."""
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    places = [0.0] * len(wanted)
    at = low - ROW
    for index in order:
        at = places[index] = max(wanted[index], at + ROW)
    at = high + ROW
    for index in reversed(order):
        at = places[index] = min(places[index], at - ROW)
    return places


def grid(panel, box):
    parts = []
    for value, words in panel.y.ticks:
        _, y = box.at(panel, (panel.x.low, value))
        parts.append(line(box.left, y, box.right, y, "grid"))
        parts.append(text(box.left - 7, y + 4, words, "quiet small", "end"))
    for value, words in panel.x.ticks:
        x, _ = box.at(panel, (value, panel.y.low))
        parts.append(line(x, box.top, x, box.bottom, "grid"))
        parts.append(text(x, box.bottom + 16, words, "quiet small", "middle"))
    parts.append(line(box.left, box.bottom, box.right, box.bottom, "frame"))
    parts.append(line(box.left, box.top, box.left, box.bottom, "frame"))
    parts.append(text(box.left + box.width / 2, box.bottom + 33, panel.x.label, "quiet small", "middle"))
    parts.append(text(box.left - 50, box.top + box.height / 2, panel.y.label, "quiet small", "middle", turn=True))
    parts.append(text(box.left, box.top - 10, panel.title, "panel"))
    return parts


def lines(panel, box):
    parts = []
    for one in panel.series:
        if one.computed:
            parts.append(path([box.at(panel, point) for point in one.computed], one.style, "2 4"))
        dash = "6 4" if one.style == "limit" or palette.STYLES[one.style][3] else ""
        if len(one.points) > 1:
            parts.append(path([box.at(panel, point) for point in one.points], one.style, dash))
        parts += [marker(*box.at(panel, point), one.style) for point in one.points]
    return parts


def labels(panel, box):
    """The name of each line beside its end, joined to it by a thin line where it had to move or the line ends early."""
    ends = [box.at(panel, one.points[-1]) for one in panel.series]
    places = spread([y for _, y in ends], box.top, box.bottom)
    parts = []
    for one, (x, y), place in zip(panel.series, ends, places):
        if abs(place - y) > 2 or x < box.right - 20:
            parts.append(line(x + 5, y, box.right + 9, place, f"leader {one.style}"))
        parts.append(marker(box.right + 15, place, one.style))
        parts.append(text(box.right + 24, place + 4, one.label))
    return parts


def draw(panel, box):
    parts = grid(panel, box) + lines(panel, box)
    if panel.direct:
        parts += labels(panel, box)
    for row, (style, words) in enumerate(panel.notes):
        y = box.top + 12 + ROW * row
        parts += [marker(box.left + 13, y - 4, style), text(box.left + 22, y, words, "small")]
    return parts


def label_room(panel):
    """The width that the longest label takes: 6.7 pixels a character is what common fonts need at this size."""
    return 34 + 6.7 * max(len(one.label) for one in panel.series) if panel.direct else 14


def wrapped(words, joint, width):
    """Lines of at most the width, parted only at joints."""
    found = []
    for part in words.split(joint):
        if found and len(found[-1] + joint + part) <= width:
            found[-1] += joint + part
        else:
            found.append(part)
    return found


def figure(title, below, description, panels, columns=2, height=300):
    """The whole picture. `below` is the line under the title, `description` what a reader who can't see it is told."""
    rows = -(-len(panels) // columns)
    cell = (WIDTH - 16) / columns
    under = wrapped(below, " · ", 140)
    head = HEAD + 17 * (len(under) - 1)
    total = head + rows * (height + 74) + 4
    used = list(dict.fromkeys(one.style for panel in panels for one in panel.series))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total:.0f}" width="{WIDTH}" '
        f'height="{total:.0f}" role="img" aria-labelledby="title desc">',
        f'<title id="title">{escape(title)}</title><desc id="desc">{escape(description)}</desc>',
        f"<style>{palette.css(used)}</style>",
        f'<rect x=".5" y=".5" width="{WIDTH - 1}" height="{total - 1:.0f}" rx="6" class="ground"/>',
        text(20, 28, title, "heading"),
        *(text(20, 46 + 17 * row, words, "quiet") for row, words in enumerate(under)),
    ]
    for index, panel in enumerate(panels):
        left = 8 + (index % columns) * cell + 64
        top = head + (index // columns) * (height + 74) + 28
        parts += draw(panel, Box(left, top, cell - 64 - label_room(panel), height))
    return "\n".join([*parts, "</svg>", ""])
