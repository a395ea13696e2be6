#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Says how many instructions a repetition of an operation executes in user mode, as valgrind counts them:
# instructions.sh PROBE OPERATION [TIMES], where PROBE is the built program Probes.
# The number is the difference of a run with TIMES more repetitions (default 2000) and one without.
#
# It is the same in every run, under any load and on every x86-64 processor with AVX2 (since 2015 all but the
# smallest): valgrind shows programs one and the same there, a Core i7 of 2013 without SHA instructions, so portable
# code hashes. System calls that valgrind does not know fail as on an old kernel, and what replaces them is
# counted. Hash tables are seeded alike, and what is named in a run has names of the same length.
set -eu
probe=$1
operation=$2
times=${3:-2000}
. "$(dirname "$0")/prepare.sh"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
# Valgrind can't read the debugging information that the compiler writes.
"${OBJCOPY:-llvm-objcopy}" --strip-debug "$probe" "$place/probe"
cd "$place"

run() {
    env -i PATH="$PATH" SWIFT_DETERMINISTIC_HASHING=1 "$@"
}
count() {
    prepare ./probe "cache-$1" "$operation"
    run valgrind --tool=callgrind --callgrind-out-file=/dev/null ./probe systemCalls "cache-$1" "$operation" "$2" 2>log ||
        { cat log >&2; exit 1; }
    awk '$2 == "Collected" { print $4 }' log
}
few=$(count 1 200)
many=$(count 2 $((times + 200)))
awk -v few="$few" -v many="$many" -v times="$times" \
    'BEGIN { printf "%.1f instructions per repetition\n", (many - few) / times }'
