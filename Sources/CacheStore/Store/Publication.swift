// SPDX-License-Identifier: Apache-2.0

import Platform

/// On what a record is published.
enum Precondition {
    /// Whatever is there.
    case none
    /// The entry's record still has these bytes; nil: there still is no entry.
    case unchanged([UInt8]?)
}

/// How publishing ended.
package enum PublishOutcome: Sendable, Equatable {
    /// What was written may be held in memory by this word of the generation table; nil where it may not,
    /// because another was writing meanwhile or there is no such table.
    case published(Generation?)
    /// The precondition no longer held.
    case conflict
    /// The record names an object that is gone, and there were no bytes to make it from.
    case objectMissing

    package var isPublished: Bool {
        if case .published = self { true } else { false }
    }

    /// By which the value may be held; nil where it may not, or was not published.
    package var generation: Generation? {
        if case .published(let generation) = self { generation } else { nil }
    }
}

/// A record on its way to its entry.
struct Publication {
    let key: Digest
    let content: Content
    /// By the caller's clock.
    let created: Timestamp
    /// The record as it will be on disk.
    let bytes: [UInt8]
    /// What the access time of a new entry must be; nil: any near the present will do.
    let accessed: Timestamp?
    let precondition: Precondition
    /// Called when nothing is left but to write the entry, before the writer is added to the word of the key.
    var willWrite: (() -> Void)?
}
