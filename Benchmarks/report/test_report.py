# SPDX-License-Identifier: Apache-2.0
"""python3 -m unittest discover Benchmarks/report"""

import json
import unittest

import growth
import results
import summary
import targets
from sample import read, row, verdict


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

    def test_the_limit_that_is_shown_is_the_one_compared_with(self):
        rows = [row(*who, p50=p50, workload="W4", op="get_miss")
                for who, p50 in ((("limit", ""), 300), (("limit", "once"), 700), (("ours", "removed"), 1400))]
        one = verdict(read(*rows), "W4-disk-asked@ext4")
        self.assertEqual((one["ratio"], one["limit"], one["limit_ratio"]), (2, 700, 2))

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

    def test_a_reference_whose_rounds_are_far_apart_is_pointed_out(self):
        hits = {"workload": "W10", "op": "mem_hit", "size": 64, "fs": "-"}
        lines = [row("ours", "memory", number, 600, **hits) for number in range(3)]
        limits = [row("limit", "mutex64", number, p50, **hits) for number, p50 in enumerate((40, 300, 370))]
        one = verdict(read(*lines, *limits), "W10-limit-1t")
        self.assertEqual(one["verdict"], targets.NOT_MET)
        self.assertEqual(one["why"], "rounds of limit (C, 64 mutexes) are 9.2 × apart")
        limits = [row("limit", "mutex64", number, p50, **hits) for number, p50 in enumerate((200, 300, 370))]
        self.assertEqual(verdict(read(*lines, *limits), "W10-limit-1t")["why"], "")

    def test_several_measurements_of_a_round_count_as_their_median(self):
        hits = {"workload": "W10", "op": "mem_hit", "size": 64, "fs": "-"}
        limits = [row("limit", "mutex64", 0, p50, **hits) for p50 in (40, 500, 600)]
        one = verdict(read(row("ours", "memory", 0, 600, **hits), *limits), "W10-limit-1t")
        self.assertEqual((one["ratio"], one["rounds"]), (1.2, 1))

    def test_a_cull_that_looks_at_nothing_is_no_peer_of_a_scan(self):
        times = (("ours", "disk", 2e-2), ("limit", "", 1e-2), ("python-diskcache", "", 1e-4), ("find", "", 3e-2))
        lines = [
            row(system, variant, workload="W6", op="gc_scan", seconds=seconds) for system, variant, seconds in times
        ]
        self.assertEqual(verdict(read(*lines), "W6-scan@ext4")["best_peer"]["name"], "find")
        lines = [{**line, "op": "gc"} for line in lines]
        self.assertEqual(verdict(read(*lines), "W6-trim@ext4")["best_peer"]["name"], "python-diskcache")

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
    def test_a_walk_is_computed_on_by_what_each_entry_costs(self):
        fit = growth.fit([(n, 5e6 + 300.0 * n) for n in (1e3, 1e4, 1e5, 1e6)])
        self.assertTrue(0.5 < fit.exponent < 1)
        self.assertAlmostEqual(fit.at(1e9) / 300e9, 1, 3)

    def test_a_look_up_is_computed_on_by_what_each_tenfold_costs(self):
        fit = growth.fit([(n, 2000.0 + 500 * tenfold) for tenfold, n in enumerate((1e3, 1e4, 1e5, 1e6))])
        self.assertAlmostEqual(fit.at(1e9), 5000)
        self.assertAlmostEqual(fit.line(1e3)[-1][1], 5000)

    def test_nothing_gets_faster_for_ever(self):
        self.assertTrue(2 <= growth.fit([(1e3, 3.0), (1e4, 2.5), (1e5, 2.0)]).at(1e9) <= 3)

    def test_small_times_count_as_much_as_large_ones(self):
        lines = [growth.fit([(1e3, 1e3), (1e4, 1e4), (1e5, last)]) for last in (1e5, 2e5)]
        self.assertTrue(1e9 <= lines[1].at(1e9) < 1.8 * lines[0].at(1e9))

    def test_one_point_has_no_growth(self):
        self.assertIsNone(growth.fit([(1000, 5), (1000, 6)]))

    def test_only_what_grows_more_than_the_limit_is_not_met(self):
        def grown(system, op, power):
            return [
                row(system, "disk" if system == "ours" else "", op=op, workload="G-entries", n=n, p50=1000.0 * n**power)
                for n in (1000, 10_000, 100_000)
            ]

        found = read(*grown("ours", "get_hit", 0.1), *grown("ours", "put_new", 0.3), *grown("ours", "put_over", 0.3))
        for line in grown("limit", "put_over", 0.2):
            found.add(line, 0)
        states = {
            op: verdict(found, f"growth-{op}")["verdict"] for op in ("get_hit", "put_new", "put_over", "get_miss")
        }
        self.assertEqual(list(states.values()), [targets.MET, targets.NOT_MET, targets.MET, targets.NOT_MEASURED])


if __name__ == "__main__":
    unittest.main()
