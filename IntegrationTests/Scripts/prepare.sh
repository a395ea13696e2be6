# SPDX-License-Identifier: Apache-2.0
#
# prepare PROBE CACHE OPERATION makes the cache for a run that is counted, and where the operation makes new
# files all of its directories, so that no put comes first in one. For the scripts beside this one.
prepare() {
    "$1" systemCalls "$2" key 0
    case $3 in
    new | replace | compute | behind)
        names=$(seq 0 255 | xargs printf '%02x ')
        (cd "$2/objects" && mkdir -p -m 700 $names)
        (cd "$2/entries" && mkdir -p -m 700 $names)
        ;;
    esac
}
