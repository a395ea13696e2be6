// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// One thing that a diagnosis looked at.
package struct Finding: Sendable, Equatable, Codable {
    /// How much it matters.
    package enum Level: String, Sendable, Codable {
        /// As it should be.
        case fine
        /// It works, but in a second-best way that is slower or larger.
        case fallback
        /// Something to do.
        case risk
    }

    /// What was looked at: "file system".
    package let subject: String
    package let level: Level
    /// What was found.
    package let state: String
    /// What to do about it, or what it costs; nil where all is fine.
    package let advice: String?
}

extension DirectoryFacts {
    /// What all that means.
    ///
    /// A pure function: the policy of `diskcache doctor`.
    package var findings: [Finding] {
        [
            directoryFinding, ownerFinding, permissionsFinding, fileSystemFinding, attributesFinding,
            unnamedFilesFinding, locksFinding, controlFinding, spaceFinding, inodesFinding, clockFinding,
        ]
    }

    /// Below that a cache can be expected to hit the end before somebody looks.
    private static let lowShare = 0.05

    /// Kernel time stamps lag by up to 10 ms, and network file systems use their server's clock; a sweep
    /// stays correct with any skew, but ages and the eviction order are off by it.
    private static let tolerableSkew: Duration = .seconds(2)

    private var directoryFinding: Finding {
        if !isCurrent {
            return risk("directory", "the path leads to another directory now", "open the cache anew")
        }
        if space.isReadOnly {
            return risk(
                "directory",
                "the file system is mounted read-only",
                "mount it for writing, or use another directory: only reading works here"
            )
        }
        if !isWritable {
            return risk(
                "directory",
                "not writable by user \(user)",
                "give this user write permission, or use a directory of its own: only reading works here"
            )
        }
        return fine("directory", "writable")
    }

    private var ownerFinding: Finding {
        guard owner != user else { return fine("owner", "user \(owner), as this process") }
        return risk(
            "owner",
            "user \(owner), but this process is user \(user)",
            "use one user for all processes of a cache: what one makes is private to it"
        )
    }

    private var permissionsFinding: Finding {
        let mode = "0" + String(permissions & 0o777, radix: 8)
        if permissions & 0o022 != 0 {
            return risk(
                "permissions",
                "\(mode): other users can replace what is in it",
                "chmod go-rwx the directory: trust nothing that it held"
            )
        }
        if permissions & 0o077 != 0 {
            return risk("permissions", "\(mode): other users can look into it", "chmod go-rwx the directory")
        }
        return fine("permissions", mode)
    }

    private var fileSystemFinding: Finding {
        if fileSystem.isRemote {
            return risk(
                "file system",
                "\(fileSystem.name): no local disk",
                "use a local directory: locks and renames promise less on network file systems"
            )
        }
        if fileSystem.isVolatile {
            return Finding(
                subject: "file system",
                level: .fallback,
                state: "\(fileSystem.name): in memory",
                advice: "the cache is gone when the machine restarts, and takes its memory until then"
            )
        }
        return fine("file system", fileSystem.name)
    }

    private var attributesFinding: Finding {
        guard !hasAttributes else { return fine("metadata", "in extended attributes") }
        return Finding(
            subject: "metadata",
            level: .fallback,
            state: "in files: no extended attributes here",
            advice: "each key takes a block of its own, and each lookup three more system calls"
        )
    }

    private var unnamedFilesFinding: Finding {
        if hasUnnamedFiles { return fine("new files", "unnamed until complete (O_TMPFILE)") }
        // Nothing could be tried where nothing can be written; that has been said.
        if !isWritable { return fine("new files", "none: the directory can't be written") }
        return Finding(
            subject: "new files",
            level: .fallback,
            state: "named in tmp/ first: no O_TMPFILE here",
            advice: "what a killed process leaves there stays until the next `diskcache gc`"
        )
    }

    private var locksFinding: Finding {
        switch hasLocks {
        case true?: return fine("locks", "flock works")
        case nil: return fine("locks", "not tried: the lock file can't be opened")
        case false?:
            return risk(
                "locks",
                "flock fails here",
                "use a local directory: without locks a collection can remove what another process stores"
            )
        }
    }

    private var controlFinding: Finding {
        let subject = "control file"
        switch control {
        case .shared: return fine(subject, "shared by all processes")
        case .readOnly:
            return Finding(
                subject: subject,
                level: .fallback,
                state: "shared, but read-only to this process",
                advice: "what this process does is not counted in `diskcache stats`"
            )
        case .missing, .impossible:
            return Finding(
                subject: subject,
                level: .fallback,
                state: control == .missing ? "none: it can't be made" : "none: no shared mappings here",
                advice: "a hit in memory takes a system call, and `diskcache stats` knows of no counts"
            )
        }
    }

    private var spaceFinding: Finding {
        let state = "\(percent(space.availableBytes, of: space.totalBytes)) free"
        guard isLow(Double(space.availableBytes), of: Double(space.totalBytes)) else {
            return fine("space", state)
        }
        return risk("space", state, "free some, or trim the cache with `diskcache gc --max-size`")
    }

    private var inodesFinding: Finding {
        guard space.totalInodes > 0 else { return fine("inodes", "not limited") }
        let state =
            "\(percent(Int64(clamping: space.availableInodes), of: Int64(clamping: space.totalInodes))) free"
        guard isLow(Double(space.availableInodes), of: Double(space.totalInodes)) else {
            return fine("inodes", state)
        }
        return risk("inodes", state, "delete files, or trim the cache with `diskcache gc --max-entries`")
    }

    private var clockFinding: Finding {
        guard let clockSkew else { return fine("clock", "not compared: nothing can be written") }
        guard clockSkew > Self.tolerableSkew || clockSkew < .zero - Self.tolerableSkew else {
            return fine("clock", "the file system's agrees with the system's")
        }
        let seconds = clockSkew.components.seconds
        return risk(
            "clock",
            "the file system's is \(abs(seconds)) s \(seconds < 0 ? "behind" : "ahead of") the system's",
            "set the clocks: the order in which values are evicted depends on them"
        )
    }

    private func isLow(_ available: Double, of total: Double) -> Bool {
        total > 0 && available / total < Self.lowShare
    }

    private func percent(_ available: Int64, of total: Int64) -> String {
        total > 0 ? "\(Int(Double(available) / Double(total) * 100)) %" : "unknown"
    }

    private func fine(_ subject: String, _ state: String) -> Finding {
        Finding(subject: subject, level: .fine, state: state, advice: nil)
    }

    private func risk(_ subject: String, _ state: String, _ advice: String) -> Finding {
        Finding(subject: subject, level: .risk, state: state, advice: advice)
    }
}

extension SharedCache {
    /// Where the two files of an entry are, for those who want to look with their own tools.
    package func paths(of entry: CacheEntry) -> (entry: String, object: String) {
        (
            "\(path)/\(StoreLayout.entries)/\(StoreLayout.path(of: entry.keyDigest.digest))",
            "\(path)/\(StoreLayout.objects)/\(StoreLayout.path(of: entry.digest.digest))"
        )
    }
}
