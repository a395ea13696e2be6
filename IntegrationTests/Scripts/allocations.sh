#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Says how many times a repetition of an operation calls the allocator:
# allocations.sh PROBE OPERATION [TIMES], where PROBE is the built program Probes.
# The number is the difference of a run with TIMES more repetitions (default 1000000) and one without.
set -eu
export SWIFT_DETERMINISTIC_HASHING=1
probe=$1
operation=$2
times=${3:-1000000}
here=$(dirname "$0")
. "$here/prepare.sh"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"${CC:-clang}" -O2 -shared -fPIC -o "$place/allocations.so" "$here/allocations.c"

count() {
    prepare "$probe" "$place/cache-$1" "$operation"
    LD_PRELOAD="$place/allocations.so" ALLOCATION_COUNT="$place/count" \
        "$probe" systemCalls "$place/cache-$1" "$operation" "$1"
    cat "$place/count"
}
few=$(count 200)
many=$(count $((times + 200)))
awk -v few="$few" -v many="$many" -v times="$times" \
    'BEGIN { printf "%.6f allocations per %s\n", (many - few) / times, "repetition" }'
