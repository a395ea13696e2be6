# SPDX-License-Identifier: Apache-2.0
"""What is written: numbers, plots, RESULTS.md, README and what the command prints."""

import contextlib
import importlib.util
import io
import json
import os
import tempfile
import unittest
import xml.dom.minidom

import axes
import document
import formats
import plots
import svg
import tables
import targets
from sample import read, row, sample


class Numbers(unittest.TestCase):
    def test_formats(self):
        self.assertEqual(
            [formats.span(ns) for ns in (312, 4_360, 44_100, 999_600, 1.83e9, 3.6e12 * 3)],
            ["0.312 µs", "4.36 µs", "44.1 µs", "1.00 ms", "1.83 s", "3.00 h"],
        )
        self.assertEqual(
            [formats.per_second(value) for value in (812, 999.6, 63_000, 1.234e6)],
            ["812", "1.00 k", "63.0 k", "1.23 M"],
        )
        self.assertEqual(formats.between(1_000, 2_000, "p50_ns"), "1.00–2.00 µs")
        self.assertEqual(formats.between(1_000, 2_000_000, "p50_ns"), "1.00 µs–2.00 ms")

    def test_ticks_are_inside_and_few(self):
        for low, high in ((1, 1), (90, 130), (2e3, 7e5), (1, 1e9)):
            axis = axes.times([low, high], "time")
            named = [words for _, words in axis.ticks if words]
            self.assertTrue(1 <= len(named) <= 9, named)
            self.assertTrue(all(axis.low <= value <= axis.high for value, _ in axis.ticks))

    def test_labels_keep_apart_and_inside(self):
        for wanted in ([50, 51, 52, 199, 200], [1, 1, 1]):
            places = sorted(svg.spread(wanted, 0, 200))
            self.assertTrue(all(b - a >= svg.ROW - 1e-9 for a, b in zip(places, places[1:])))
            self.assertTrue(0 <= places[0] and places[-1] <= 200)


README = f"# x\n\nbefore\n\n{document.BEGIN}\nold\n{document.END}\n\nafter\n{document.END}\n"


class Documents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.checkout = folder.name
        self.put("README.md", README)
        self.found = read(*sample())

    def put(self, name, words):
        path = os.path.join(self.checkout, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(words)
        return path

    def get(self, name):
        with open(os.path.join(self.checkout, name), encoding="utf-8") as file:
            return file.read()

    def write(self):
        return document.write(self.checkout, self.found, targets.evaluate(targets.load(), self.found))

    def test_readme_is_replaced_between_the_markers_only_and_stays_the_same(self):
        self.write()
        once = self.get("README.md")
        self.assertTrue(once.startswith(f"# x\n\nbefore\n\n{document.BEGIN}\n## Performance\n"))
        self.assertTrue(once.endswith(f"\n{document.END}\n\nafter\n{document.END}\n"))
        self.assertNotIn("old", once)
        self.assertIn("Measured 2026-01-02 (full run), Example", once)
        self.assertNotIn("one note", once)
        self.assertIn(
            "| get, 4 KiB, from disk | 5.00 µs | 4.00 µs | - |", once
        )
        self.write()
        self.assertEqual(self.get("README.md"), once)

    def test_readme_says_that_a_run_was_quick_and_its_rounds_are_those_of_what_it_shows(self):
        lines = [{**line, "mode": "quick"} if line.get("kind") == "machine" else line for line in sample()]
        few = [row("ours", "disk", 0, 1000.0 * n, workload="G-entries", op="get_miss", n=n) for n in (1000, 10_000)]
        self.found = read(*lines, *few)
        self.write()
        once = self.get("README.md")
        self.assertIn("(quick run)", once)
        self.assertIn("medians of 5 rounds", once)

    def test_readme_has_the_number_of_the_kernel_and_the_commits_without_changes(self):
        one = {**sample()[0], "kernel": "Linux 6.18.44-local-v1"}
        self.found = read(one, {**one, "dirty": True}, *sample()[1:])
        self.write()
        self.assertIn("Linux 6.18.44, journaled", self.get("README.md"))
        self.assertIn("commit abc;", self.get("README.md"))
        text = self.get("Benchmarks/RESULTS.md")
        for words in ("Linux 6.18.44-local-v1", "abc, abc with changes"):
            self.assertIn(words, text)
        self.found = read({**one, "dirty": True}, *sample()[1:])
        self.write()
        self.assertIn("commit abc with changes;", self.get("README.md"))

    def test_readme_without_markers_is_left_alone(self):
        self.put("README.md", "# x\n")
        with self.assertRaises(document.NoMarkers):
            self.write()
        self.assertEqual(self.get("README.md"), "# x\n")
        self.assertFalse(os.path.exists(os.path.join(self.checkout, "Benchmarks", "RESULTS.md")))

    def test_results_say_what_was_measured_and_what_was_not(self):
        self.write()
        text = self.get("Benchmarks/RESULTS.md")
        for words in (
            "2026-01-02",
            "Example, 2 cores",
            "- one note",
            "- left out: RocksDB: not installed",
            "journaled ext4",
            "all on tmpfs",
            "n^1.00",
            "33.3 min",
        ):
            self.assertIn(words, text)

    def test_wrong_values_are_marked(self):
        self.found.add(row("sqlite", workload="W1M", errs=1), 0)
        self.write()
        self.assertIn("| 4 KiB | SQLite, **wrong values** |", self.get("Benchmarks/RESULTS.md"))
        self.assertIn("- wrong: W1M get_hit SQLite: 1 operations", self.get("Benchmarks/RESULTS.md"))

    def test_every_picture_is_linked_and_sound(self):
        stale = self.put("Benchmarks/plots/old.svg", "")
        paths = [path for path in self.write() if path.endswith(".svg")]
        self.assertFalse(os.path.exists(stale))
        self.assertEqual(
            {os.path.basename(path) for path in paths},
            {"overview.svg", "get-size.svg", "get-disk-size.svg", "mixed-processes.svg", "growth-entries.svg"},
        )
        for path in paths:
            picture = xml.dom.minidom.parse(path).documentElement
            self.assertTrue(picture.getElementsByTagName("title") and picture.getElementsByTagName("desc"))
            self.assertIn(f"(plots/{os.path.basename(path)})", self.get("Benchmarks/RESULTS.md"))

    def test_what_is_computed_is_labelled(self):
        self.assertIn("at 10⁹ 33.3 min", plots.all_of(self.found)["growth-entries.svg"])

    def test_a_table_has_as_many_cells_in_each_row(self):
        for title, table in tables.all_of(self.found) + tables.growth_of(self.found):
            self.assertEqual(len({line.count("|") for line in table.splitlines()}), 1, title)


class CommandLine(unittest.TestCase):
    def run_with(self, lines, *words):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
        spec = importlib.util.spec_from_file_location("report_main", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file, contextlib.redirect_stdout(
            io.StringIO()
        ) as out:
            file.write("\n".join(map(json.dumps, lines)))
            file.flush()
            return module.main([file.name, *words]), out.getvalue()

    def test_strict_fails_only_where_something_is_not_met(self):
        slow = [row("ours", "disk", p50=9000), row("limit")]
        self.assertEqual(self.run_with(slow)[0], 0)
        self.assertEqual(self.run_with(slow, "--strict")[0], 1)
        self.assertEqual(self.run_with(slow, "--strict", "--only", "W10")[0], 0)
        self.assertIn("NOT MET", self.run_with(slow)[1])

    def test_json_is_json(self):
        _, out = self.run_with(sample(), "--json")
        self.assertIn("W1-disk-4KiB@ext4", [one["id"] for one in json.loads(out)])


if __name__ == "__main__":
    unittest.main()
