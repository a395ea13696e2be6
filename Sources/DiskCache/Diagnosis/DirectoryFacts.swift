// SPDX-License-Identifier: Apache-2.0

package import CacheStore
package import Platform

/// The facts about a cache directory from which ``findings`` draws its conclusions.
package struct DirectoryFacts: Sendable, Equatable {
    /// Whether this process can write it.
    package var isWritable: Bool
    /// Whether files can have extended attributes of the user's.
    package var hasAttributes: Bool
    /// Whether there are files without a name (O_TMPFILE) that can be given one later.
    package var hasUnnamedFiles: Bool
    /// Whether files can be locked (flock); nil where there was none to try it on.
    package var hasLocks: Bool?
    /// What this process has of the control file.
    package var control: ControlCondition
    /// Whether the path still leads to the directory that was opened.
    package var isCurrent: Bool
    package var fileSystem: FileSystemKind
    /// Whether `config.json` says that it is local, though it does not look so.
    package var isAssumedLocal = false
    package var space: FileSystemSpace
    package var owner: UInt32
    /// The user that this process acts as.
    package var user: UInt32
    /// The permission bits of the directory and of its parts, united.
    package var permissions: UInt32
    /// How far the file system's time stamps are ahead of the clock; nil where none could be made.
    package var clockSkew: Duration?
    package var kernel = KernelFacts()
    package var parts = PartFacts()
    package var collections = CollectionFacts()
    /// The layout of a control file that was replaced when the cache was opened, as another version's.
    package var replacedControlVersion: UInt64?
    /// nil where nothing depends on it: the file system is on a disk.
    package var memory: MemoryFacts?
    /// What the directory says of its limits; nil where that was not asked for.
    package var configuration: ConfigurationFacts?
    /// What the cache takes on disk, as its processes have added it up; nil where nobody knows.
    package var usedBytes: Int64?
    /// What limits have done; nil where nobody knows.
    package var evictions: EvictionPressure?

    package init(
        isWritable: Bool,
        hasAttributes: Bool,
        hasUnnamedFiles: Bool,
        hasLocks: Bool?,
        control: ControlCondition,
        isCurrent: Bool,
        fileSystem: FileSystemKind,
        space: FileSystemSpace,
        owner: UInt32,
        user: UInt32,
        permissions: UInt32,
        clockSkew: Duration?
    ) {
        self.isWritable = isWritable
        self.hasAttributes = hasAttributes
        self.hasUnnamedFiles = hasUnnamedFiles
        self.hasLocks = hasLocks
        self.control = control
        self.isCurrent = isCurrent
        self.fileSystem = fileSystem
        self.space = space
        self.owner = owner
        self.user = user
        self.permissions = permissions
        self.clockSkew = clockSkew
    }
}

/// What the machine offers.
package struct KernelFacts: Sendable, Equatable {
    /// getxattrat(2).
    package var hasAttributeCalls = true
    /// linkat(2) by descriptor.
    package var hasEmptyPathLinks = true
    /// Of the processor, for SHA-256 and CRC-32C.
    package var hasHashInstructions = true

    package init() {}
}

/// The directories and files that a cache is made of, without its entries and objects.
package struct PartFacts: Sendable, Equatable {
    /// Names of those with another owner than the directory.
    package var foreign: [String] = []
    /// Names of those that are another kind of file than the cache makes there: a pipe, a link, a directory.
    package var misplaced: [String] = []
    /// How far the latest change of any of them is ahead of the clock; negative: it is in the past.
    package var newest: Duration = .zero
    /// Bytes that they take on disk.
    package var overhead: Int64 = 0
    /// Entries that were looked at, a sample, and those of them without a record.
    package var sampledEntries = 0
    package var recordlessEntries = 0

    package init() {}
}

/// What is known of collections.
package struct CollectionFacts: Sendable, Equatable {
    /// Who is at one.
    package struct Holder: Sendable, Equatable {
        /// nil where this process does not see it: it may be in another container.
        package var process: Int32?
        package var duration: Duration
        /// By a signal or a debugger, as far as this process can see it.
        package var isStopped: Bool

        package init(process: Int32?, duration: Duration, isStopped: Bool) {
            self.process = process
            self.duration = duration
            self.isStopped = isStopped
        }
    }

    package var holder: Holder?
    /// Whether the last one did not come to its end.
    package var wasCutOff = false
    /// Since the last whole one began; nil: there was none.
    package var sinceLast: Duration?
    /// Since the cache was made.
    package var age: Duration = .zero

    package init() {}
}

/// Memory of the machine, in bytes.
package struct MemoryFacts: Sendable, Equatable {
    /// What can be had without swapping.
    package var available: Int64
    /// Free swap.
    package var swap: Int64

    package init(available: Int64, swap: Int64) {
        self.available = available
        self.swap = swap
    }
}

/// What `config.json` says, as far as a diagnosis needs it.
package struct ConfigurationFacts: Sendable, Equatable {
    package var isThere = false
    /// Why it can't be read; nil: it can, or is not there.
    package var problem: String?
    package var unknownKeys: [String] = []
    /// Bytes.
    package var maximumSize: Int64?
    /// Of the file system.
    package var minimumFree: FreeSpace?

    package init() {}
}
