// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// What the directory is, and whose.
extension DirectoryFacts {
    /// Whether it is a copy that lost what makes its files a cache.
    var recordsFinding: Finding? {
        guard parts.sampledEntries > 0 else { return nil }
        guard RecordLoss.isLikely(without: parts.recordlessEntries, of: parts.sampledEntries) else {
            return Finding.fine("keys", "have their metadata")
        }
        return Finding.risk(
            "keys",
            "\(parts.recordlessEntries) of \(parts.sampledEntries) have lost their metadata, and can't be read",
            "copy the directory again with extended attributes (cp -a, rsync -aX), or remove them: `diskcache gc`"
        )
    }

    var directoryFinding: Finding {
        if !isCurrent {
            return Finding.risk("directory", "the path leads to another directory now", "open the cache anew")
        }
        if space.isReadOnly {
            return Finding.risk(
                "directory",
                "the file system is mounted read-only",
                "mount it for writing, or use another directory: only reading works here"
            )
        }
        if !isWritable {
            return Finding.risk(
                "directory",
                "not writable by user \(user)",
                "give this user write permission, or use a directory of its own: only reading works here"
            )
        }
        return Finding.fine("directory", "writable")
    }

    var ownerFinding: Finding {
        guard owner == user else {
            return Finding.risk(
                "owner",
                "user \(owner), but this process is user \(user)",
                "use one user for all processes of a cache: what one makes is private to it"
            )
        }
        guard parts.foreign.isEmpty else {
            let rest = parts.foreign.count - 3
            let names =
                parts.foreign.prefix(3).joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
            return Finding.risk(
                "owner",
                "user \(owner), but others made \(names)",
                "chown -R \(owner) the directory, and run every command on it as that user: as root, too, what one "
                    + "makes is private to it"
            )
        }
        return Finding.fine("owner", "user \(owner), as this process")
    }

    /// nil where every file is what it should be.
    var misplacedFinding: Finding? {
        guard !parts.misplaced.isEmpty else { return nil }
        let rest = parts.misplaced.count - 3
        let names =
            parts.misplaced.prefix(3).joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
        return Finding.risk(
            "files",
            "a link, a pipe, a directory or the like is in the place of \(names)",
            "move it away: the cache makes its own anew, and what needs it fails until then"
        )
    }

    var permissionsFinding: Finding {
        let mode = "0" + String(permissions & 0o777, radix: 8)
        if permissions & 0o022 != 0 {
            return Finding.risk(
                "permissions",
                "\(mode): other users can replace what is in it",
                "chmod go-rwx the directory: trust nothing that it held"
            )
        }
        if permissions & 0o077 != 0 {
            return Finding.risk(
                "permissions",
                "\(mode): other users can look into it",
                "chmod go-rwx the directory"
            )
        }
        return Finding.fine("permissions", mode)
    }

    var versionFinding: Finding {
        guard let version = replacedControlVersion else {
            return Finding.fine("version", "format \(StoreLayout.formatVersion)")
        }
        return Finding.risk(
            "version",
            "the control file had the layout \(version) of another version, and was made anew just now",
            "end the processes of the other version: as long as it runs, each side misses what the other writes"
        )
    }

    var fileSystemFinding: Finding {
        if isAssumedLocal {
            return Finding.fine("file system", "\(fileSystem.name): local, as config.json says")
        }
        if !fileSystem.isKnown {
            return Finding.risk(
                "file system",
                "\(fileSystem.name): not known, and taken for remote",
                "where only this machine uses it: `diskcache config set assume-local true`, and open the cache anew in all "
                    + "processes"
            )
        }
        if fileSystem.isRemote {
            return Finding.risk(
                "file system",
                "\(fileSystem.name): no local disk",
                "use a local directory: locks and renames promise less on network file systems"
            )
        }
        if fileSystem.isVolatile {
            return Finding.fallback(
                "file system",
                "\(fileSystem.name): in memory",
                "the cache is gone when the machine restarts, and takes its memory until then"
            )
        }
        return Finding.fine("file system", fileSystem.name)
    }
}
