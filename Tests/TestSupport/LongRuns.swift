// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Whether long runs are requested: by the variable `DISKCACHE_SOAK`, with any value.
public let isSoak = ProcessInfo.processInfo.environment["DISKCACHE_SOAK"] != nil

/// Returns all cases in long runs, and otherwise `count` of them, chosen at random.
public func sample<Case>(_ count: Int, of cases: some Collection<Case>) -> [Case] {
    isSoak ? Array(cases) : Array(cases.shuffled().prefix(count))
}
