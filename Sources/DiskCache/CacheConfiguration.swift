// SPDX-License-Identifier: Apache-2.0

public import CacheStore
public import FoundationEssentials

/// How a process uses a cache directory.
///
/// Each process may choose its own.
public struct CacheConfiguration: Sendable {
    /// What a power cut can do to a value whose put has returned.
    public enum Durability: Sendable {
        /// Recent values may be lost. A damaged one is detected when it is read, and is a miss. As fast as the
        /// page cache.
        case none
        /// Nothing: what a put writes reaches the medium before the put returns.
        ///
        /// That includes bytes that a process without this has stored earlier. Slower by as much as the disk
        /// takes.
        case fsync
    }

    /// How much of a key is stored besides its digest.
    public enum KeyNames: Sendable {
        /// The key itself, so that it can be listed (up to 1 KiB).
        case stored
        /// Nothing, because keys may be secret.
        case hashedOnly
    }

    /// Where the metadata of an entry is written.
    ///
    /// A directory that was made without extended attributes never has any, whoever uses it. One that was made with them
    /// has both forms, and a process that can't read extended attributes can't open it.
    public enum MetadataForm: Sendable {
        /// An extended attribute, or a file where the directory was made without them.
        case automatic
        /// Always a file. A directory that this makes is one without extended attributes.
        case sidecar
    }

    /// What a get checks before it returns a value from disk.
    public enum Verification: Sendable {
        /// That value and metadata are byte for byte as they were stored, by a checksum (CRC-32C).
        case checksum
        /// That the value has the right length.
        ///
        /// Saves at least 20 µs per MiB, and gives up the promise that damage is detected: bytes or metadata
        /// that changed on the medium, or in a power cut, are returned as they are, until `verify` finds them.
        /// Other processes, killed or not, are no reason to avoid it: either way a value is never torn or
        /// mixed.
        case length
    }

    /// The expiration of values that are stored without one.
    ///
    /// Default: never.
    public var defaultExpiration = Expiration.never
    /// What an access does to the expiration of values that are stored without saying so.
    ///
    /// Default: nothing.
    public var defaultOnAccess = Expiration.OnAccess.keep
    /// Default: none, as in every cache.
    public var durability = Durability.none
    /// Default: the checksum.
    public var verification = Verification.checksum
    /// Default: keys are kept.
    public var keyNames = KeyNames.stored
    /// Default: what suits the file system.
    public var metadataForm = MetadataForm.automatic
    /// How old the last access recorded on disk may be before a hit records another one, which costs a system
    /// call.
    ///
    /// Default: 225 seconds. A sliding expiration is renewed at least every 1/16 of its length.
    public var accessGranularity: Duration = Accesses.defaultGranularity
    /// The limits that the directory gets if it has none yet.
    ///
    /// If it has some, those hold and these are ignored, which ``CacheEvent/limitsDiffer(given:present:)``
    /// reports unless they agree. Use `updateLimits` to change the limits of a directory. Default: nil, none.
    public var limits: CacheLimits?
    /// How long a put waits for room, if the directory is at one of its limits or the disk is full, while this
    /// or another process makes some.
    ///
    /// After that it fails with the code `noRoom` or `noSpace`. It waits no longer than a second for a process
    /// that makes no progress because it is stopped or hangs, and not at all while that is known.
    /// `value(forKey:orCompute:)` waits a second at most, and then returns the value without storing it. Zero:
    /// make room only if that is possible at once. Default: a minute.
    public var roomPatience: Duration = .seconds(60)
    /// What this process keeps in its own memory.
    ///
    /// Default: up to 64 MiB.
    public var memory = Memory()
    /// What the program's own metrics and logs call this cache.
    ///
    /// The library only hands it on, with ``SharedCache/configuration``. Default: nil;
    /// ``SharedCache/standard(name:configuration:)`` sets it to the name that it is given.
    public var name: String?
    /// When a put returns, unless its options say otherwise.
    ///
    /// Default: once the value is on disk.
    public var writing = Writing.through
    /// How much may wait to be published in the background.
    public var writeBehind = WriteBehind()
    /// Called for each event, on the thread where it happens.
    ///
    /// It should return soon, and must not use the cache.
    ///
    /// Default: nil. See also ``SharedCache/events``.
    public var onEvent: (@Sendable (CacheEvent) -> Void)?
    /// What this cache does in the background, and on closing.
    public var janitor = Janitor()
    /// The clock by which values expire; nil for the system's.
    ///
    /// For tests.
    public var now: (@Sendable () -> Date)?
    /// Whether a value in memory is returned only while its key's generation is unchanged.
    ///
    /// False breaks the promise of coherence. It is for the test that such a break would be found.
    package var checksGenerations = true
    /// The capabilities to assume of the file system, for tests of the fallbacks.
    package var assumedCapabilities: Capabilities?

    /// The defaults.
    public init() {}

    /// The defaults, with a size limit for the directory if it has no limits yet; see ``limits``.
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
        return options
    }
}

extension CacheConfiguration {
    /// When a put returns.
    public enum Writing: Sendable, Equatable {
        /// Once the value is on disk and every process sees it.
        case through
        /// Once this process sees it; a background thread publishes it soon.
        ///
        /// For callers that can afford to lose what they put: a crash loses what is not published yet, and
        /// nothing else; so does an exit without ``SharedCache/close(deadline:)-7uv4d`` or
        /// ``SharedCache/flush(within:)-6e5rf``. Until a value is published, other processes see the previous
        /// one, and this one does not see what they put meanwhile, which publishing then replaces. If
        /// publishing fails, which an event reports, all processes see the previous value again.
        case behind
    }

    /// How many puts may wait to be published in the background.
    public struct WriteBehind: Sendable, Equatable {
        /// Bytes of all values that are waiting.
        ///
        /// A put that would exceed them waits itself.
        ///
        /// Default: 64 MiB: a second's work of a disk that writes 64 MiB/s.
        public var size: ByteCount
        /// How many values may be waiting.
        ///
        /// Default: 10,000: a second's work at 100 µs each.
        public var count: Int

        /// Limits, both of which are optional.
        public init(size: ByteCount = .mebibytes(64), count: Int = 10_000) {
            self.size = size
            self.count = count
        }
    }

    /// What a cache does in the background, and on closing.
    public struct Janitor: Sendable, Equatable {
        /// Whether a thread of this cache looks after the directory.
        ///
        /// It wakes up once a second to record the last uses of values in memory, to let those go that have expired,
        /// to check that the directory and its control file are still there and its limits the same (about nine
        /// system calls), and to collect garbage unless another process does. Default: true. Without it values still
        /// expire to the instant, but only other processes reclaim their space, and in memory they stay until they are
        /// asked for or evicted.
        public var isEnabled = true
        /// The time between two collections, by whichever process.
        ///
        /// Default: a minute, so that expired values don't take space for long. A collection of 100,000 keys
        /// takes half a second of one processor, in slices. The interval is at least 50 times as long as the
        /// last one worked, so that collections never take more than a fiftieth. Each process adds up to a
        /// tenth, so that they don't all wake up at once. Less than a second counts as one.
        public var interval: Duration = .seconds(60)
        /// Whether this cache counts as open: the last such cache to close removes expired values.
        ///
        /// Default: true. A program that does one thing and ends can save that work.
        public var joinsSession = true

        /// The defaults.
        public init() {}
    }
}
