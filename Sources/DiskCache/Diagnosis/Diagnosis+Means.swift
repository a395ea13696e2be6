// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// What the kernel and the file system offer, and what stands in for what they don't.
extension DirectoryFacts {
    var attributesFinding: Finding {
        guard !hasAttributes else { return Finding.fine("metadata", "in extended attributes") }
        // Nothing could be tried; why, has been said.
        if !isWritable || space.isReadOnly {
            return Finding.fine("metadata", "not tried: the directory can't be written")
        }
        return Finding.fallback(
            "metadata",
            "in files: no extended attributes here",
            "each key takes a block of its own, and each lookup four more system calls"
        )
    }

    var unnamedFilesFinding: Finding {
        if hasUnnamedFiles { return Finding.fine("new files", "unnamed until complete (O_TMPFILE)") }
        // Nothing could be tried where nothing can be written; that has been said.
        if !isWritable || space.isReadOnly {
            return Finding.fine("new files", "none: the directory can't be written")
        }
        return Finding.fallback(
            "new files",
            "named in tmp/ first: no O_TMPFILE here",
            "what a killed process leaves there stays until the next `diskcache gc`"
        )
    }

    var kernelFinding: Finding {
        if !kernel.hasAttributeCalls {
            return Finding.fallback(
                "kernel",
                "no getxattrat (Linux 6.13), or it is forbidden here",
                "each read and write of metadata takes three more system calls"
            )
        }
        if !kernel.hasEmptyPathLinks {
            return Finding.fallback(
                "kernel",
                "no linkat by descriptor (Linux 6.10)",
                "new files get their names by way of /proc, which must be mounted"
            )
        }
        return Finding.fine("kernel", "has all that is used")
    }

    var processorFinding: Finding {
        guard !kernel.hasHashInstructions else {
            return Finding.fine("processor", "hashes by instructions of its own")
        }
        return Finding.fallback(
            "processor",
            "no instructions for SHA-256 or CRC-32C",
            "putting and verifying large values takes several times as long"
        )
    }

    /// The cache sets the access times by which it evicts itself, whatever the mount says.
    var accessTimesFinding: Finding {
        switch space.accessTimes {
        case .never: Finding.fine("access times", "noatime: does not matter, the cache sets its own")
        case .seldom: Finding.fine("access times", "relatime: does not matter, the cache sets its own")
        case .always:
            Finding.fallback(
                "access times",
                "strictatime: every read of a value makes the file system write",
                "mount it with relatime or noatime: the cache sets its own"
            )
        }
    }

    var locksFinding: Finding {
        switch hasLocks {
        case true?: return Finding.fine("locks", "flock works")
        case nil: return Finding.fine("locks", "not tried: the lock file can't be opened")
        case false?:
            return Finding.risk(
                "locks",
                "flock fails here",
                "use a local directory: without locks a collection can remove what another process stores"
            )
        }
    }

    var controlFinding: Finding {
        let subject = "control file"
        switch control {
        case .shared: return Finding.fine(subject, "shared by all processes")
        case .sharedInMemory:
            return Finding.fine(
                subject,
                "shared by all processes, in /dev/shm: where a disk is full, \(fileSystem.name) ends processes that "
                    + "write to mapped files"
            )
        case .unreachable:
            return Finding.risk(
                subject,
                "other processes use one in a /dev/shm that this one does not see",
                "give them one /dev/shm (containers: --ipc), or put the cache on ext4: until then this process stores "
                    + "nothing"
            )
        case .readOnly:
            return Finding.fallback(
                subject,
                "shared, but read-only to this process",
                "what this process does is not counted in `diskcache stats`"
            )
        case .missing, .impossible:
            return Finding.fallback(
                subject,
                control == .missing ? "none: it can't be made" : "none: no shared mappings here",
                "a hit in memory takes a system call, and `diskcache stats` knows of no counts"
            )
        }
    }
}
