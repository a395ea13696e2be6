# SPDX-License-Identifier: Apache-2.0
"""What --write writes: Benchmarks/RESULTS.md, the plots and README's section about performance."""

import os
import textwrap

import formats
import machine
import plots
import results as measured
import summary
import systems
import tables
import targets

BEGIN = "<!-- performance: written by Benchmarks/compare -->"
END = "<!-- end -->"
HOW = """\
All systems take turns within a round, in an order that is shuffled for each; figures are medians over rounds, and a
ratio is the median of the ratios within each round, so what else the machine did meanwhile touches both sides of it.
In parentheses: the least and the greatest round. Percentiles come from histograms whose steps are 1.6 % apart. Times
are those of one operation in one process; operations per second are those of all processes together. The page cache
is warm. "× limit" is how many times as slow as the limit a system is, also where it is computed from operations per
second. Writes wait for the medium only where the name says fsync (SQLite and python-diskcache also do at
checkpoints). Every value that is read is checked, and a system with wrong values is marked
and no longer compared."""


GROWTH = """\
A directory's rounds follow each other, so limit and ours don't take turns here: what is compared is how each grows. n^…
is the power of the number of entries that fits the medians. What is computed for a billion is no measurement: a
fixed part and one for each entry where that power is above 0.5, else a fixed part and one for each tenfold, fitted to
the medians by least squares of the relative errors; it assumes that what an operation needs of the directory is in
memory, as it was when it was measured. For a get of a key never put it does not hold: the filter that answers it has
room for about two million keys, and where more were ever put the disk is asked, as for a removed key."""
LIMIT = (
    '"System calls" is the same work in bare system calls in C, without checksums, metadata, expiration or eviction.'
    " Every value that is read from disk is verified."
)
MORE = (
    "LMDB is faster for small values; see [Benchmarks/RESULTS.md](Benchmarks/RESULTS.md) for all workloads, peers and"
    " versions. `Benchmarks/compare --quick` measures on your machine, in five minutes."
)


def wrapped(words):
    """A paragraph in lines as long as README's."""
    return textwrap.fill(words, 118, break_long_words=False, break_on_hyphens=False)


class NoMarkers(Exception):
    """README has no place for the section."""


def write(checkout, results, verdicts):
    """Writes all files and gives their paths. Plots that these results don't have are removed: one run, one set."""
    pictures = plots.all_of(results)
    readme = os.path.join(checkout, "README.md")
    with open(readme, encoding="utf-8") as file:
        replaced = with_section(file.read(), section(results, verdicts))
    folder = os.path.join(checkout, "Benchmarks", "plots")
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        if name.endswith(".svg") and name not in pictures:
            os.remove(os.path.join(folder, name))
    contents = {os.path.join(folder, name): picture for name, picture in pictures.items()}
    contents[os.path.join(checkout, "Benchmarks", "RESULTS.md")] = report(results, verdicts, pictures)
    contents[readme] = replaced
    for path, content in contents.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
    return list(contents)


def with_section(readme, words):
    """README with what is between the markers replaced."""
    if readme.count(BEGIN) != 1 or END not in readme[readme.index(BEGIN) :]:
        raise NoMarkers(f"README.md needs one line {BEGIN} and, below it, one {END}")
    start = readme.index(BEGIN) + len(BEGIN)
    return f"{readme[:start]}\n{words}\n{readme[readme.index(END, start):]}"


def section(results, verdicts):
    """README's section, markers left out."""
    place = plots.main_file_system(results)
    shown = {one["id"]: one for one in verdicts if one["fs"] in (None, place)}
    named = [(words, shown.get(f"{name}@{place}", shown.get(name))) for words, name in targets.told()]
    named = [(words, one) for words, one in named if one and one["verdict"] != targets.NOT_MEASURED]
    rows = [told(words, one) for words, one in named]
    rounds = sorted({one["rounds"] for _, one in named if one["rounds"]})
    parts = [
        "## Performance",
        "",
        wrapped(f"{measured_on(results, place, rounds)} {LIMIT}"),
        "",
        formats.markdown(["", "diskcache", "system calls", "best peer"], rows, (1, 2, 3)),
        "",
        wrapped(MORE),
    ]
    return "\n".join(parts)


def measured_on(results, place, rounds):
    """One paragraph: when, where, with what."""
    facts = dict(machine.facts(results))
    parts = [
        f"Measured {facts.get('date', '')}" + (f" ({facts['run']})" if "run" in facts else ""),
        machine.processor(results),
        machine.kernel(results),
        machine.file_system(results, place),
        f"Swift {facts['Swift']}" if "Swift" in facts else "",
        f"commit {machine.clean_commit(results)}" if "commit" in facts else "",
    ]
    span = (
        f"{rounds[0]} rounds" if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]} rounds" if rounds else "no rounds"
    )
    return ", ".join(part for part in parts if part) + f"; medians of {span} in which all systems take turns."


def told(words, verdict):
    """One row of README's table."""
    metric, peer = verdict["metric"], verdict["best_peer"]
    return [
        words,
        formats.measured(verdict["ours"], metric),
        formats.measured(verdict["limit"], metric),
        f"{peer['name']} {formats.measured(peer['value'], metric)}" if peer else "-",
    ]


def report(results, verdicts, pictures):
    """RESULTS.md."""
    parts = ["<!-- Written by Benchmarks/compare. Don't edit. -->", f"# Measured {machine.date(results)}".rstrip(), ""]
    parts += [formats.markdown(["", ""], machine.facts(results)), "", HOW, ""]
    parts += ["## Targets", "", summary.LEGEND, "", summary.table(verdicts), "", summary.counts(verdicts), ""]
    if summary.missing(verdicts):
        parts += [f"Not measured: {summary.missing(verdicts)}.", ""]
    parts += [f"- {line}" for line in results.notes + summary.reasons(results)] + [""]
    parts += chapter("Plots", images(pictures, growth=False), [])
    parts += chapter("By workload", [], tables.all_of(results))
    parts += chapter("Growth", [GROWTH, *images(pictures, growth=True)], tables.growth_of(results))
    named = systems.descriptions(measured.split(results.rows))
    parts += ["## Systems", "", formats.markdown(["name", "what"], named), ""]
    return "\n".join(parts)


def images(pictures, growth):
    return [f"![{words(name)}](plots/{name})" for name in pictures if name.startswith("growth") == growth]


def words(name):
    return name.removesuffix(".svg").replace("-", " over ", 1).replace("-", " ")


def chapter(title, opening, found):
    """A heading and what is under it; nothing if there is nothing."""
    if not found and not any("](plots/" in one for one in opening):
        return []
    parts = [f"## {title}", ""]
    for one in opening:
        parts += [one, ""]
    for heading, table in found:
        parts += [f"### {heading}", "", table, ""]
    return parts
