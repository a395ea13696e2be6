// SPDX-License-Identifier: Apache-2.0

public import CacheStore
public import FoundationEssentials
import Platform

/// The configuration of a ``SharedCache``: how this process uses the directory.
///
/// Processes that share a directory may use different configurations.
public struct CacheConfiguration: Sendable {
    /// Whether stored values survive a power failure.
    public enum Durability: Sendable {
        /// A power failure may lose recent values.
        ///
        /// A damaged value is detected when it is read (``CacheConfiguration/Verification/checksum``), and is a miss. A put
        /// costs no more than a write to the page cache.
        case none
        /// A value is on the storage device before its put returns.
        ///
        /// This includes bytes that another process has already stored without `fsync`. Each put also waits until the
        /// device has written its data.
        case fsync
    }

    /// Whether keys are stored in addition to their digests.
    public enum KeyNames: Sendable {
        /// Keys of up to 1 KiB are stored, so that they can be listed.
        case stored
        /// Only digests are stored, for keys that may be secret.
        case hashedOnly
    }

    /// Where the metadata of an entry is stored.
    ///
    /// A directory that was created without extended attributes never uses them, whichever process opens it. A directory
    /// that was created with them can contain both forms; a process that cannot read extended attributes cannot open it.
    public enum MetadataForm: Sendable {
        /// In an extended attribute, or in a file if the directory was created without extended attributes.
        case automatic
        /// Always in a file.
        ///
        /// A directory created with this setting does not use extended attributes.
        case sidecar
    }

    /// How a get verifies a value from disk before it returns it.
    public enum Verification: Sendable {
        /// Verifies the value and its metadata with a checksum (CRC-32C): they are exactly the stored bytes.
        case checksum
        /// Verifies only the length of the value.
        ///
        /// Saves at least 20 µs per MiB, but does not detect damage: a get returns bytes and metadata that changed on the
        /// medium or in a power failure, until `verify` finds them. The setting makes no difference to the safety against
        /// other processes: with either setting, concurrent or killed processes never cause a torn or mixed value.
        case length
    }

    /// The expiration of values that are stored without one.
    ///
    /// Default: never.
    public var defaultExpiration = Expiration.never
    /// The effect of an access on the expiration of values that are stored without ``PutOptions/onAccess``.
    ///
    /// Default: ``Expiration/OnAccess/keep``, no effect.
    public var defaultOnAccess = Expiration.OnAccess.keep
    /// Whether stored values survive a power failure.
    ///
    /// Default: ``CacheConfiguration/Durability/none``.
    public var durability = Durability.none
    /// How a get verifies a value from disk before it returns it.
    ///
    /// Default: ``CacheConfiguration/Verification/checksum``.
    public var verification = Verification.checksum
    /// Whether keys are stored in addition to their digests.
    ///
    /// Default: ``CacheConfiguration/KeyNames/stored``.
    public var keyNames = KeyNames.stored
    /// Where the metadata of entries is stored.
    ///
    /// Default: ``CacheConfiguration/MetadataForm/automatic``, which suits the file system.
    public var metadataForm = MetadataForm.automatic
    /// How old the last recorded access of a value on disk may be before a hit records a new one.
    ///
    /// Recording an access costs four system calls. Default: 225 seconds. A sliding expiration is extended at least every 1/16
    /// of its length.
    public var accessGranularity: Duration = Accesses.defaultGranularity
    /// The limits to set for the directory if it has none yet.
    ///
    /// If the directory already has limits, those apply, and ``CacheEvent/limitsDiffer(given:present:)`` reports any
    /// difference. Use `updateLimits` to change the limits of a directory. Default: nil, no limits.
    public var limits: CacheLimits?
    /// How long a put waits for space if the directory is at one of its limits or the disk is full.
    ///
    /// Meanwhile this or another process evicts values.
    ///
    /// After this time the put fails with the code `noRoom` or `noSpace`. If the evicting process makes no progress because
    /// it is stopped or hangs, a put waits at most a second for it, and later puts do not wait for it at all.
    /// `value(forKey:orCompute:)` waits at most a second, and then returns the value without storing it. Zero: evict only
    /// if that is possible at once. Default: one minute.
    public var roomPatience: Duration = .seconds(60)
    /// The memory tier of this process.
    ///
    /// Default: up to 64 MiB.
    public var memory = Memory()
    /// The name of this cache in the program's own metrics and logs.
    ///
    /// The library does not use it; the program can read it from ``SharedCache/configuration``. Default: nil;
    /// ``SharedCache/standard(name:configuration:)`` then sets it to its `name` argument.
    public var name: String?
    /// When a put returns, if its options do not specify it.
    ///
    /// Default: ``CacheConfiguration/Writing/through``, once the value is on disk.
    public var writing = Writing.through
    /// The limits of the write-behind queue.
    public var writeBehind = WriteBehind()
    /// A callback for each event, on the thread where the event occurs.
    ///
    /// It should return quickly and must not use the cache.
    ///
    /// Default: nil. See also ``SharedCache/events``.
    public var onEvent: (@Sendable (CacheEvent) -> Void)?
    /// The background maintenance of this cache, and its work on closing.
    public var janitor = Janitor()
    /// The clock that decides when values expire; nil for the system clock.
    ///
    /// For tests.
    public var now: (@Sendable () -> Date)?
    /// Whether a value in memory is returned only while its key's generation is unchanged.
    ///
    /// Only a test sets this to false: that breaks coherence, and the test checks that the failure is detected.
    package var checksGenerations = true
    /// The file-system capabilities to assume instead of detecting them, for tests of the fallbacks; nil to detect them.
    package var assumedCapabilities: Capabilities?

    /// Creates the default configuration.
    public init() {}

    /// Creates the default configuration with a size limit, for a directory that has no limits yet; see ``limits``.
    public init(maximumSize: ByteCount) {
        limits = CacheLimits(maximumSize: maximumSize)
    }

    var storeOptions: StoreOptions {
        var options = StoreOptions()
        options.isDurable = durability == .fsync
        options.recordForm = metadataForm == .automatic ? .attribute : .sidecar
        options.accessGranularity = accessGranularity
        options.roomPatience = roomPatience
        options.checksContent = verification == .checksum
        options.assumedCapabilities = assumedCapabilities
        if let now { options.clock = { Timestamp(now()) } }
        return options
    }
}

extension CacheConfiguration {
    /// When a put returns.
    public enum Writing: Sendable, Equatable {
        /// Once the value is on disk and visible to all processes.
        case through
        /// Once the value is visible to this process; a background thread publishes it soon afterwards.
        ///
        /// For callers that can afford to lose a put. A crash, or an exit without ``SharedCache/close(deadline:)-7uv4d`` or
        /// ``SharedCache/flush(within:)-6e5rf``, loses the values that are not published yet, and nothing else. Until a
        /// value is published, other processes see the previous value. Meanwhile this process does not see other processes'
        /// puts of the same key, and publishing replaces them. If publishing fails, an event reports it, and all processes
        /// see the previous value again.
        case behind
    }

    /// The limits of the write-behind queue: values that are waiting to be published.
    public struct WriteBehind: Sendable, Equatable {
        /// The maximum size of all values in the queue.
        ///
        /// A put that would exceed it waits.
        ///
        /// Default: 64 MiB, which a disk that writes 64 MiB/s publishes in one second.
        public var size: ByteCount
        /// The maximum number of values in the queue.
        ///
        /// Default: 10,000, which are published in one second at 100 µs each.
        public var count: Int

        /// Creates limits; both are optional.
        public init(size: ByteCount = .mebibytes(64), count: Int = 10_000) {
            self.size = size
            self.count = count
        }
    }

    /// The background maintenance of a cache, and its work on closing.
    public struct Janitor: Sendable, Equatable {
        /// Whether this cache runs a maintenance thread.
        ///
        /// Once a second the thread records the last accesses of values in memory, drops expired values from memory, checks
        /// that the directory and its control file still exist and that the limits are unchanged (about nine system calls),
        /// and collects garbage unless another process does. Default: true. Without the thread, values still expire on
        /// time, but only other processes reclaim their space on disk, and expired values stay in this process's memory
        /// until they are requested or evicted.
        public var isEnabled = true
        /// The time between two collections, by any process.
        ///
        /// Default: one minute, so that expired values do not take up space for long. A collection of 100,000 keys takes
        /// half a second of CPU time, in slices. The interval is at least 50 times the working time of the last collection,
        /// so that collections never use more than 2 % of one CPU. Each process extends its interval by up to 10 %, so that
        /// the processes do not all wake up at once. Less than a second counts as one second.
        public var interval: Duration = .seconds(60)
        /// Whether this cache counts as open.
        ///
        /// The last open cache to close removes expired values. Default: true. A short-lived program can set this to false
        /// to save that work.
        public var joinsSession = true

        /// Creates the default settings.
        public init() {}
    }
}
