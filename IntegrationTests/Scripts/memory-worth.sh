#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Says what a get takes with memory and without, where memory can save least: memory-worth.sh PROBE [ROUNDS], where
# PROBE is the built program Probes. With and without take turns; the numbers are medians of ROUNDS (7), in µs a get.
#
# large: values of 20,000 bytes, all equally popular, six times as many as memory holds.
# small: four processes that have just started, and ask for each of their keys (333 bytes) once on the average.
set -eu
probe=$1
rounds=${2:-7}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$probe" load fill "$place/large" 1 20000 20000 </dev/null >/dev/null
"$probe" load fill "$place/small" 1 333 100000 </dev/null >/dev/null

# Means of so many processes at the same time: gets CACHE BYTES KEYS HELD SKIPPED COUNT PROCESSES
gets() {
    for process in $(seq "$7"); do
        "$probe" load uniform "$place/$1" "$process" "$2" "$3" "$4" "$5" "$6" </dev/null >"$place/report-$process" &
    done
    wait
    for process in $(seq "$7"); do cat "$place/report-$process"; echo; done |
        sed -n 's/.*"mean":\([0-9.e-]*\).*/\1/p' | awk '{ sum += $1 } END { print sum / NR }'
}
for round in $(seq "$rounds"); do
    for held in -1 0; do
        gets large 20000 20000 "$held" 20000 60000 1 >>"$place/large.$held"
        gets small 333 100000 "$held" 0 100000 4 >>"$place/small.$held"
    done
done
for case in large small; do
    for held in -1 0; do sort -g "$place/$case.$held" | sed -n "$(((rounds + 1) / 2))p"; done |
        paste -s | awk -v name="$case" '{ printf "%s: %.2f with memory, %.2f without: %.2f times\n", name, $1, $2, $1 / $2 }'
done
