# SPDX-License-Identifier: Apache-2.0
"""python3 -m unittest discover Benchmarks/report"""

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
import growth
import plots
import results
import summary
import svg
import tables
import targets

MACHINE = {
    "kind": "machine",
    "date": "2026-01-02T03:04:05Z",
    "cpu": "Example",
    "cores": 2,
    "kernel": "Linux 6.18",
    "commit": "abc",
    "mode": "full",
    "file_systems": {"ext4": {"type": "ext4", "how": "journaled ext4, loop device"}},
    "versions": {"lmdb": "0.9"},
    "notes": ["one note"],
}


def row(system, variant="", round=0, p50=1000.0, **fields):
    base = {
        "workload": "W1",
        "op": "get_hit",
        "fs": "ext4",
        "size": 4096,
        "procs": 1,
        "p99_ns": 3 * p50,
        "ops_per_s": 1e9 / p50,
        "errs": 0,
    }
    return {"system": system, "variant": variant, "round": round, "p50_ns": p50, **base, **fields}


def read(*lines):
    found = results.Results()
    for line in lines:
        found.add(line, 0)
    return found


def verdicts(found, prefix):
    return [one for one in targets.evaluate(targets.load(), found) if one["id"].startswith(prefix)]


def verdict(found, name):
    return next(one for one in targets.evaluate(targets.load(), found) if one["id"] == name)


class Rounds(unittest.TestCase):
    def test_median_of_a_round_comes_before_the_median_over_rounds(self):
        rows = read(
            *(row("ours", "disk", 0, p50) for p50 in (1, 2, 90)), row("ours", "disk", 1, 10), row("ours", "disk", 2, 20)
        ).rows
        self.assertEqual(results.overall(rows, "p50_ns"), 10)

    def test_ratios_are_taken_within_each_round(self):
        # Medians: 200 and 100, so their ratio is 2. Within the rounds: 1, 4 and 0.5, so the median is 1.
        ours = [row("ours", "disk", number, p50) for number, p50 in enumerate((100, 400, 200))]
        limit = [row("limit", "", number, p50) for number, p50 in enumerate((100, 100, 400))]
        one = verdict(read(*ours, *limit), "W1-disk-4KiB@ext4")
        self.assertEqual((one["ours"], one["reference"], one["ratio"]), (200, 100, 1))
        self.assertEqual(sorted(one["ratios"]), [0.5, 1, 4])
        self.assertEqual(one["verdict"], targets.MET)

    def test_a_round_that_one_side_lacks_counts_for_nothing(self):
        one = verdict(
            read(row("ours", "disk", 0, 100), row("ours", "disk", 1, 900), row("limit", "", 0, 100)),
            "W1-disk-4KiB@ext4",
        )
        self.assertEqual((one["ratio"], one["rounds"]), (1, 1))

    def test_rounds_of_two_files_are_different_rounds(self):
        found = results.Results()
        found.add(row("ours", "disk", 0, 100), 0)
        found.add(row("limit", "", 0, 100), 1)
        one = verdict(found, "W1-disk-4KiB@ext4")
        self.assertEqual(one["verdict"], targets.NOT_MEASURED)
        self.assertIn("nothing to compare", one["why"])

    def test_rates_are_compared_the_other_way_round(self):
        rows = read(row("ours", "disk", procs=4, ops_per_s=100.0), row("limit", procs=4, ops_per_s=150.0))
        one = verdict(rows, "W1-disk-4KiB-4p@ext4")
        self.assertEqual((one["ratio"], one["verdict"]), (1.5, targets.NOT_MET))


class Verdicts(unittest.TestCase):
    def test_every_claim_has_a_name_of_its_own(self):
        names = [claim["id"] for claim in targets.load()]
        self.assertEqual(len(names), len(set(names)))
        self.assertFalse(
            [
                claim
                for claim in targets.load()
                if "{" in json.dumps([claim["id"], claim["what"], claim["ours"]]).replace('{"', "")
            ]
        )

    def test_readme_names_claims_that_exist(self):
        names = {claim["id"] for claim in targets.load()}
        self.assertEqual([name for _, name in targets.told() if name not in names], [])

    def test_bounds_go_along_the_sizes(self):
        bounds = {claim["id"]: claim["bound"] for claim in targets.load()}
        self.assertEqual(
            [bounds[f"W1-disk-{size}"] for size in ("128B", "4KiB", "64KiB", "1MiB")], [1.5, 1.4, 1.6, 2.5]
        )
        self.assertEqual((bounds["W10-nscache-1t"], bounds["W10-nscache-2t"]), (4, 8))

    def test_the_bound_itself_is_met_and_more_is_not(self):
        for p50, state in ((1400, targets.MET), (1401, targets.NOT_MET)):
            self.assertEqual(
                verdict(read(row("ours", "disk", p50=p50), row("limit")), "W1-disk-4KiB@ext4")["verdict"], state
            )

    def test_faster_than_every_peer_is_judged_by_the_fastest(self):
        peers = [row("lmdb", p50=500, workload="W1M"), row("sqlite", p50=4000, workload="W1M")]
        for p50, state in ((499, targets.MET), (500, targets.NOT_MET), (501, targets.NOT_MET)):
            one = verdict(read(row("ours", "memory", p50=p50, workload="W1M"), *peers), "W1M-4KiB@ext4")
            self.assertEqual((one["verdict"], one["against"]), (state, "LMDB"))
        self.assertEqual(one["best_peer"], {"name": "LMDB", "value": 500})

    def test_without_peers_the_claim_is_not_measured(self):
        one = verdict(read(row("ours", "memory", workload="W1M"), row("limit", workload="W1M")), "W1M-4KiB@ext4")
        self.assertEqual((one["verdict"], one["best_peer"]), (targets.NOT_MEASURED, None))
        self.assertEqual(one["limit"], 1000)

    def test_what_a_claim_was_not_compared_with_is_said(self):
        mixed = {"workload": "W5", "op": "mixed"}
        one = verdict(read(row("ours", "memory", **mixed), row("limit", p50=2000, **mixed)), "W5-p99-1p@ext4")
        self.assertEqual((one["verdict"], one["why"]), (targets.MET, "without python-diskcache, SQLite"))
        absent = {"kind": "absent", "system": "lmdb", "why": "no compiler"}
        found = read(absent, row("ours", "memory", workload="W1M"), row("sqlite", p50=2000, workload="W1M"))
        self.assertEqual(verdict(found, "W1M-4KiB@ext4")["why"], "without LMDB")

    def test_one_wrong_value_spoils_the_claim(self):
        one = verdict(read(row("ours", "disk", errs=1), row("limit", p50=1e6)), "W1-disk-4KiB@ext4")
        self.assertEqual((one["verdict"], one["why"]), (targets.NOT_MET, "1 operations went wrong"))

    def test_a_failed_run_spoils_the_claim(self):
        failed = {
            "kind": "failed",
            "system": "ours",
            "workload": "W1",
            "op": "get_hit",
            "variant": "disk",
            "fs": "ext4",
            "size": 4096,
            "procs": 1,
            "why": "killed",
        }
        one = verdict(read(row("ours", "disk"), row("limit"), failed), "W1-disk-4KiB@ext4")
        self.assertEqual((one["verdict"], one["why"]), (targets.NOT_MET, "1 runs failed"))

    def test_a_peer_with_wrong_values_is_no_peer(self):
        found = read(
            row("ours", "memory", workload="W1M"),
            row("lmdb", p50=1, errs=2, workload="W1M"),
            row("sqlite", p50=4000, workload="W1M"),
        )
        one = verdict(found, "W1M-4KiB@ext4")
        self.assertEqual((one["best_peer"]["name"], one["verdict"]), ("SQLite", targets.MET))
        self.assertIn("wrong: W1M get_hit LMDB: 2 operations", summary.text([one], found))

    def test_one_computation_too_many_in_one_round_is_not_met(self):
        stampede = {
            "workload": "W8",
            "op": "stampede",
            "system": "ours",
            "variant": "memory",
            "fs": "ext4",
            "procs": 8,
            "wall_ms": 205,
        }
        found = read(*({**stampede, "round": number, "computed": 2 if number == 1 else 1} for number in range(5)))
        self.assertEqual(verdict(found, "W8-computed")["verdict"], targets.NOT_MET)
        self.assertEqual(verdict(found, "W8-served")["verdict"], targets.MET)

    def test_file_systems(self):
        claim = next(claim for claim in targets.load() if claim["id"] == "W1-disk-4KiB")
        self.assertEqual(targets.file_systems(claim, read(row("ours", fs="tmpfs"))), ["ext4", "tmpfs"])
        self.assertEqual(
            targets.file_systems(claim, read(row("ours", fs="btrfs"), row("ours", fs="tmpfs"))), ["ext4", "tmpfs"]
        )
        self.assertEqual(targets.file_systems(claim, read(row("ours", fs="btrfs"))), ["btrfs"])


class Growth(unittest.TestCase):
    def test_a_power_is_found_and_computed_on(self):
        fit = growth.fit([(n, 3.0 * n**0.5) for n in (1e3, 1e4, 1e5, 1e6)])
        self.assertAlmostEqual(fit.exponent, 0.5)
        self.assertAlmostEqual(fit.at(1e9) / (3.0 * 1e9**0.5), 1)

    def test_one_point_has_no_growth(self):
        self.assertIsNone(growth.fit([(1000, 5), (1000, 6)]))

    def test_only_what_grows_is_not_met(self):
        lines = [
            row("ours", "disk", op=op, workload="G-entries", n=n, p50=1000.0 * n**power)
            for n in (1000, 10_000, 100_000)
            for op, power in (("get_hit", 0.02), ("put_new", 0.3))
        ]
        found = read(*lines)
        self.assertEqual(verdict(found, "growth-get_hit")["verdict"], targets.MET)
        self.assertEqual(verdict(found, "growth-put_new")["verdict"], targets.NOT_MET)
        self.assertEqual(verdict(found, "growth-get_miss")["verdict"], targets.NOT_MEASURED)


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


def sample():
    """A small run: two sizes, two numbers of processes, growth, one peer that is absent."""
    lines = [MACHINE, {"kind": "absent", "system": "rocksdb", "why": "not installed"}]
    for number in range(5):
        for size in (4096, 65536):
            for procs in (1, 4):
                lines += [
                    row(*who, number, p50, size=size, procs=procs)
                    for who, p50 in ((("limit", ""), 4000), (("ours", "disk"), 5000))
                ]
            lines += [
                row(*who, number, p50, size=size, workload="W1M")
                for who, p50 in ((("lmdb", ""), 900), (("ours", "memory"), 300))
            ]
        for procs in (1, 2):
            for system, p50 in (("limit", 9000.0), ("ours", 3000.0), ("sqlite", 8000.0)):
                lines.append(
                    row(
                        system,
                        "memory" if system == "ours" else "",
                        number,
                        p50,
                        workload="W5",
                        op="mixed",
                        procs=procs,
                        ops_per_s=procs * 1e9 / p50,
                    )
                )
        for n in (1000, 10_000):
            lines.append(row("ours", "disk", number, 4000, workload="G-entries", n=n))
            lines.append(row("ours", "disk", number, 2000, workload="G-entries", op="gc", n=n, seconds=n * 2e-6))
    return lines


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
        self.assertIn(
            "| get from disk, 4 KiB, every byte verified | 5.00 µs | 4.00 µs | 1.25 × | - | ≤ 1.4 ×, met |", once
        )
        self.write()
        self.assertEqual(self.get("README.md"), once)

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
