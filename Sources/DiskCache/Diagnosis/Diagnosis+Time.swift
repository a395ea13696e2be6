// SPDX-License-Identifier: Apache-2.0

import Platform

/// Clocks, and what should happen from time to time.
extension DirectoryFacts {
    /// Kernel time stamps lag by up to 10 ms, and network file systems use their server's clock; a sweep
    /// stays correct with any skew, but ages and the eviction order are off by it.
    private static let tolerableSkew: Duration = .seconds(2)

    /// A collection works in slices and rests in between, for many minutes on millions of entries.
    private static let longestCollection: Duration = .seconds(3600)

    /// A process with a janitor makes one a minute, the timer of the examples one in a quarter of an hour: after a day
    /// nobody does.
    private static let longestPause: Duration = .seconds(86400)

    var clockFinding: Finding {
        // Changes can't be dated by hand: who is ahead of the clock was written when it showed another time.
        let lead = parts.newest - max(clockSkew ?? .zero, .zero)
        if lead > Self.tolerableSkew {
            return Finding.risk(
                "clock",
                "it was set back: files here are dated \(Words.span(lead)) in the future",
                "set it right; if it is right now, values expire late by that much: `diskcache clear` if that matters"
            )
        }
        guard let clockSkew else { return Finding.fine("clock", "not compared: nothing can be written") }
        guard clockSkew > Self.tolerableSkew || clockSkew < .zero - Self.tolerableSkew else {
            return Finding.fine("clock", "the file system's agrees with the system's")
        }
        return Finding.risk(
            "clock",
            "the file system's is \(Words.span(clockSkew)) \(clockSkew < .zero ? "behind" : "ahead of") the system's",
            "set the clocks: the order in which values are evicted depends on them"
        )
    }

    var collectionsFinding: Finding {
        let subject = "collections"
        if let holder = collections.holder {
            let name = holder.process.map { "process \($0)" } ?? "a process that this one does not see"
            if holder.isStopped || holder.duration > Self.longestCollection {
                return Finding.risk(
                    subject,
                    "\(name) has been at one for \(Words.span(holder.duration))"
                        + (holder.isStopped ? ", and is stopped" : ""),
                    holder.process.map {
                        "nobody else can collect: look at it (ps -o stat,cmd -p \($0)), let it go on (kill -CONT) or end it"
                    }
                        ?? "nobody else can collect: look for it in the other containers that share the directory"
                )
            }
            return Finding.fine(subject, "one is under way, by \(name)")
        }
        if collections.sinceLast ?? collections.age > Self.longestPause {
            return Finding.fallback(
                subject,
                collections.sinceLast.map { "the last whole one was \(Words.span($0)) ago" } ?? "none yet",
                "what has expired or was replaced takes space: keep the cache open in a process, or let a timer run "
                    + "`diskcache gc`"
            )
        }
        if collections.wasCutOff {
            return Finding.fine(subject, "the last was cut off; the next does its work")
        }
        return Finding.fine(
            subject,
            collections.sinceLast.map { "the last whole one was \(Words.span($0)) ago" } ?? "none yet"
        )
    }
}
