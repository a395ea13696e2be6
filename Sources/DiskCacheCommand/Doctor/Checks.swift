// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Platform

/// The policy of `doctor`: a table of checks, each with its level, subject, condition, state and advice.
///
/// For each subject, `doctor` reports the first check that applies.
extension DirectoryInspection {
    /// The first check that applies to each subject.
    var findings: [Finding] {
        let checks = [
            directoryChecks, fileChecks, fileSystemChecks, machineChecks, controlChecks, clockChecks,
            collectionChecks, spaceChecks, configurationChecks, limitChecks, evictionChecks,
        ]
        var subjects: Set<String> = []
        return checks.joined().compactMap(\.self).filter { subjects.insert($0.subject).inserted }
    }

    private var directoryChecks: [Finding?] {
        let others = Self.list(foreignFiles)
        let mode = "0" + String(permissions & 0o777, radix: 8)
        return [
            .risk("directory", !isCurrent, "the path now leads to another directory") { "reopen the cache" },
            .risk("directory", space.isReadOnly, "the file system is mounted read-only") {
                "mount it read-write or use another directory: this cache can only be read"
            },
            .risk("directory", !isWritable, "not writable by user \(user)") {
                "give this user write permission or use another directory: this cache can only be read"
            },
            .fine("directory", "writable"),

            .risk("owner", owner != user, "user \(owner), but this process runs as user \(user)") {
                "run all processes of a cache as one user: its files are private to the user who created them"
            },
            .risk("owner", !others.isEmpty, "user \(owner), but others own \(others)") {
                "chown -R \(owner) the directory, and run all commands on it as that user, not as root"
            },
            .fine("owner", "user \(owner), same as this process"),

            .risk("permissions", permissions & 0o022 != 0, "\(mode): other users can replace files") {
                "chmod go-rwx the directory, and don't trust its contents"
            },
            .risk("permissions", permissions & 0o077 != 0, "\(mode): other users have access") {
                "chmod go-rwx the directory"
            },
            .fine("permissions", mode),
        ]
    }

    private var fileChecks: [Finding?] {
        let (layout, misplaced) = (replacedControlVersion, Self.list(misplacedFiles))
        let (lost, sampled) = (entriesWithoutRecord, sampledEntries)
        let isCopy = RecordLoss.isLikely(without: lost, of: sampled)
        let replacement = "just replaced another version's control file, layout \(layout ?? 0)"
        return [
            .risk("version", layout != nil, replacement) {
                "stop all processes of the other version: neither side sees what the other writes"
            },
            .fine("version", "format \(StoreLayout.formatVersion)"),

            .risk("files", !misplaced.isEmpty, "wrong type (link, pipe, directory, …): \(misplaced)") {
                "move it away, so that the cache can create its own: until then, calls that need it fail"
            },

            .risk("rules", !rulesAreKnown, "`rules`, which lists removed values, can't be used") {
                "if it exists, chown it to user \(owner) or delete it; without it, the next gc removes all"
            },

            .risk("keys", isCopy, "\(lost) of \(sampled) have lost their metadata and can't be read") {
                "copy the directory again with extended attributes (cp -a, rsync -aX), or run `diskcache gc`"
            },
            .fine("keys", sampledEntries > 0, "have their metadata"),
        ]
    }

    private var fileSystemChecks: [Finding?] {
        // If the directory isn't writable, another finding reports that.
        let isUntried = !isWritable || space.isReadOnly
        let name = fileSystem.name
        return [
            .fine("file system", isAssumedLocal, "\(name), local according to config.json"),
            .risk("file system", !fileSystem.isKnown, "\(name): unknown, treated as remote") {
                "if only this machine uses it: `diskcache config set assume-local true`, and reopen the cache"
            },
            .risk("file system", fileSystem.isRemote, "\(name): not a local disk") {
                "use a local directory: network file systems guarantee less about locks and renames"
            },
            .fallback("file system", fileSystem.isVolatile, "\(name): in memory") {
                "the cache takes up memory, and is lost on reboot"
            },
            .fine("file system", name),

            .fine("metadata", hasAttributes, "in extended attributes"),
            .fine("metadata", isUntried, "not checked: the directory can't be written"),
            .fallback("metadata", true, "in files: no extended attributes here, or where the cache was made")
            {
                "each key takes an extra block, and each lookup four more system calls"
            },

            .fine("new files", hasUnnamedFiles, "unnamed until complete (O_TMPFILE)"),
            .fine("new files", isUntried, "not checked: the directory can't be written"),
            .fallback("new files", true, "named in tmp/ until complete: no O_TMPFILE") {
                "leftovers of killed processes stay there until the next `diskcache gc`"
            },

            .fallback("access times", space.accessTimes == .always, "strictatime: each read is a write") {
                "mount it with relatime or noatime: the cache sets access times itself"
            },
            .fine("access times", space.accessTimes == .never, "noatime: the cache sets its own"),
            .fine("access times", "relatime: the cache sets its own"),

            .fine("locks", hasLocks == true, "flock works"),
            .fine("locks", hasLocks == nil, "not checked: the lock file can't be opened"),
            .risk("locks", true, "flock fails") {
                "use a local directory: without locks, a collection can remove what other processes store"
            },
        ]
    }

    private var machineChecks: [Finding?] {
        [
            .fallback("kernel", !hasAttributeCalls, "getxattrat (Linux 6.13) is missing or blocked") {
                "reading and writing metadata takes three more system calls"
            },
            .fallback("kernel", !hasEmptyPathLinks, "linkat by file descriptor (Linux 6.10) is missing") {
                "new files get their names through /proc, which must be mounted"
            },
            .fine("kernel", "has every system call that the cache uses"),

            .fallback("processor", !hasHashInstructions, "no instructions for SHA-256 or CRC-32C") {
                "storing and verifying large values takes several times as long"
            },
            .fine("processor", "has instructions for SHA-256 and CRC-32C"),
        ]
    }

    private var controlChecks: [Finding?] {
        let subject = "control file"
        let problem =
            control == .missing
            ? "it can't be created"
            : configuration.limits.sharesMemory != false
                ? "this file system has no shared mappings" : "share-memory is false in config.json"
        let place = "in /dev/shm: on a full disk \(fileSystem.name) kills writers of mapped files"
        return [
            .fine(subject, control == .shared, "shared by all processes"),
            .fine(subject, control == .sharedInMemory, "shared by all processes, \(place)"),
            .risk(subject, control == .unreachable, "other processes use one in another /dev/shm") {
                """
                share one /dev/shm (containers: --ipc), use ext4, or `diskcache config set share-memory false`: \
                until then this process can't store values
                """
            },
            .risk(subject, control == .missing && hasControlFile, "it exists, but this process can't use it")
            {
                """
                until then this process can't store or remove values: make it readable and writable for its user \
                (and /dev/shm, if it names a file there), or delete it while no process has the cache open
                """
            },
            .fallback(subject, control == .readOnly, "shared, but read-only for this process") {
                "`diskcache stats` doesn't count what this process does"
            },
            .fallback(subject, true, "none: \(problem)") {
                "a memory hit takes a system call, and `diskcache stats` has no totals"
            },
        ]
    }

    /// Returns "a, b, c and 2 more".
    private static func list(_ names: [String]) -> String {
        names.prefix(3).joined(separator: ", ") + (names.count > 3 ? " and \(names.count - 3) more" : "")
    }
}
