// SPDX-License-Identifier: Apache-2.0

/// What a cache does in the background, and what when it is closed.
public struct JanitorConfiguration: Sendable, Equatable {
    /// Whether a thread of this cache looks after the directory.
    ///
    /// It wakes up once a second to note the last uses of values in memory and to see whether the directory and
    /// its control file are still there and its limits the same (about nine system calls), and collects garbage where no other process does. Default: yes.
    /// Without it values still expire to the instant, but their space is reclaimed by others only.
    public var isEnabled = true
    /// The time between two collections, counted over all processes.
    ///
    /// Default: a minute, so that the space of expired values is not missed for long. A collection of 100,000
    /// keys takes half a second of one processor, in slices; so that it never takes more than a fiftieth,
    /// the interval is at least 50 times as long as the last one worked. Each process adds up to a tenth, for
    /// not all to wake up at once. Less than a second counts as one.
    public var interval: Duration = .seconds(60)
    /// Whether this cache counts among those that are open: the last of them to be closed removes what has
    /// expired.
    ///
    /// Default: yes. For programs that do one thing and end it would be needless work.
    public var joinsSession = true

    /// The defaults.
    public init() {}
}
