// SPDX-License-Identifier: Apache-2.0

package import CacheStore
public import FoundationEssentials

/// How a process uses a cache directory.
///
/// Every process may choose its own.
public struct CacheConfiguration: Sendable {
    /// When a put has returned, what a power cut can do.
    public enum Durability: Sendable {
        /// Recent values may be lost; a damaged one is found out when read, and is a miss. As fast as the
        /// page cache.
        case none
        /// Nothing: what a put writes reaches the medium first.
        ///
        /// That includes bytes that were there already, stored by a process without this. Slower by as much
        /// as the disk takes.
        case fsync
    }

    /// What is kept of a key besides its digest.
    public enum KeyNames: Sendable {
        /// The key itself, so that it can be listed (up to 1 KiB).
        case stored
        /// Nothing: keys may be secret.
        case hashedOnly
    }

    /// Where the metadata of an entry is written.
    ///
    /// Both are understood wherever they are found.
    public enum MetadataForm: Sendable {
        /// An extended attribute, or a file where the file system has none.
        case automatic
        /// Always a file.
        case sidecar
    }

    /// What a get makes sure of before it gives out a value from disk.
    public enum Verification: Sendable {
        /// That value and metadata are, byte for byte, what was stored: by a checksum (CRC-32C).
        case checksum
        /// That the value has as many bytes as were stored.
        ///
        /// Saves 20 µs and more a MiB, and gives up the promise that damage is found out: bytes or metadata that
        /// changed on the medium, or in a power cut, are given out as they are, until `verify` finds
        /// them. What processes do to each other, killed or not, is no reason for it: a value is never torn
        /// or mixed either way.
        case length
    }

    /// The expiration of values that are stored without one.
    ///
    /// Default: never.
    public var defaultExpiration = Expiration.never
    /// What an access does to values that are stored without saying it.
    ///
    /// Default: nothing.
    public var defaultAccessExtension = AccessExtension.keep
    /// Default: none, as in every cache.
    public var durability = Durability.none
    /// Default: the checksum.
    public var verification = Verification.checksum
    /// Default: keys are kept.
    public var keyNames = KeyNames.stored
    /// Default: what suits the file system.
    public var metadataForm = MetadataForm.automatic
    /// How old a value's last access on disk may be before a hit renews it, which costs a system call.
    ///
    /// Default: 225 seconds. A sliding expiration is renewed at least every 1/16 of its length.
    public var accessGranularity: Duration = Store.defaultAccessGranularity
    /// The limits of the directory, written into it where it has none yet.
    ///
    /// If it has some, they count and these don't, which ``CacheEvent/limitsDiffer(given:present:)`` tells unless they
    /// agree. To change the limits of a directory, use `setLimits`. Default: nil, none.
    public var limits: CacheLimits?
    /// How long a put waits for room, where the directory is at one of its limits or the disk is full, while this or
    /// another process makes some.
    ///
    /// Then it fails, with the code `noRoom` or `noSpace`. It does not wait longer than a second for a process that does
    /// not get on, as it is stopped or hangs, and not at all while that is known. `value(forKey:orCompute:)` waits for room
    /// a second at most, and gives the value out without storing it. Zero: make room where that can be done at once.
    /// Default: a minute.
    public var roomPatience: Duration = .seconds(60)
    /// What this process keeps in its own memory.
    ///
    /// Default: up to 64 MiB.
    public var memory = MemoryConfiguration()
    /// When a put returns that does not say it.
    ///
    /// Default: once the value is on disk.
    public var writing = WritePolicy.through
    /// How much may wait to be published in the background.
    public var writeBehindLimits = WriteBehindLimits()
    /// Called for each event, on the thread where it happens: it should return soon, and must not use the
    /// cache.
    ///
    /// Default: nil. See also ``SharedCache/events``.
    public var onEvent: (@Sendable (CacheEvent) -> Void)?
    /// What this cache does in the background, and what when it is closed.
    public var janitor = JanitorConfiguration()
    /// The clock by which values expire: the system's.
    ///
    /// Tests bring their own.
    public var now: (@Sendable () -> Date)?
    /// Whether a value in memory is given out only while its key's generation is what it was.
    ///
    /// False breaks the promise of coherence: for the test that such a break would be found.
    package var checksGenerations = true
    /// What to take for what the file system can do: for tests of what falls back.
    package var assumedCapabilities: Capabilities?

    /// The defaults.
    public init() {}

    /// The defaults with a limit of size for the directory, if it has no limits yet: see ``limits``.
    public init(maximumSize: ByteCount) {
        limits = CacheLimits(maximumSize: maximumSize)
    }

    var pendingWrites: PendingWrites.Limits {
        PendingWrites.Limits(
            bytes: Int(clamping: writeBehindLimits.size.bytes),
            count: max(0, writeBehindLimits.count)
        )
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
