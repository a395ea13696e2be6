// SPDX-License-Identifier: Apache-2.0

/// Whether entries have lost their records: what a copy of a cache is without the extended attributes.
package enum RecordLoss {
    /// More than these are no killed puts', however many entries there are: each leaves one for each of its threads,
    /// until the next collection.
    private static let mostUnfinished = 1000

    /// Whether more than a quarter of the entries have none, or more than killed puts leave.
    ///
    /// A single one never counts: it may be a put that was killed, the first of a cache.
    package static func isLikely(without: Int, of entries: Int) -> Bool {
        without > mostUnfinished || (without > 1 && without > entries / 4)
    }
}
