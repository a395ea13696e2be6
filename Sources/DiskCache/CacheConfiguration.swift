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
    public var defaultOnAccess = Expiration.OnAccess.keep
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
    public var accessGranularity: Duration = Accesses.defaultGranularity
    /// The limits of the directory, written into it where it has none yet.
    ///
    /// If it has some, they count and these don't, which ``CacheEvent/limitsDiffer(given:present:)`` tells unless they
    /// agree. To change the limits of a directory, use `updateLimits`. Default: nil, none.
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
    public var memory = Memory()
    /// When a put returns that does not say it.
    ///
    /// Default: once the value is on disk.
    public var writing = Writing.through
    /// How much may wait to be published in the background.
    public var writeBehind = WriteBehind()
    /// Called for each event, on the thread where it happens: it should return soon, and must not use the
    /// cache.
    ///
    /// Default: nil. See also ``SharedCache/events``.
    public var onEvent: (@Sendable (CacheEvent) -> Void)?
    /// What this cache does in the background, and what when it is closed.
    public var janitor = Janitor()
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
            bytes: Int(clamping: writeBehind.size.bytes),
            count: max(0, writeBehind.count)
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

extension CacheConfiguration {
    /// How much of a cache a process keeps in its own memory.
    ///
    /// Copies there are as good as the value on disk: a change by any process is noticed by the next get.
    public struct Memory: Sendable, Equatable {
        /// The sum of the values' costs: of bytes their number, of decoded values what their codec says.
        ///
        /// Default: 64 MiB, which a worker process can spare and which holds the hot tenth of a cache of 640 MiB;
        /// by Zipf's law that tenth serves about three gets of four.
        public var costLimit: ByteCount
        /// How many values; nil: one for each 256 bytes of the cost limit, as even an empty value takes about
        /// that much with its key and its place.
        ///
        /// Default: nil.
        public var countLimit: Int?
        /// Whether to give some up when the system runs short of memory.
        ///
        /// Default: true.
        public var shrinksUnderPressure: Bool

        /// Limits; all can be left out.
        public init(
            costLimit: ByteCount = .mebibytes(64),
            countLimit: Int? = nil,
            shrinksUnderPressure: Bool = true
        ) {
            self.costLimit = costLimit
            self.countLimit = countLimit
            self.shrinksUnderPressure = shrinksUnderPressure
        }

        /// Nothing is kept: each get reads the disk.
        public static let none = Memory(costLimit: .bytes(0))

        var limits: MemoryLimits {
            let cost = Int(clamping: costLimit.bytes)
            return MemoryLimits(cost: cost, count: max(0, countLimit ?? max(1, cost / 256)))
        }

        var isEnabled: Bool { costLimit.bytes > 0 && countLimit != 0 }
    }

    /// When a put returns.
    public enum Writing: Sendable, Equatable {
        /// Once the value is on disk and every process sees it.
        case through
        /// Once this process sees it; a thread in the background publishes it soon.
        ///
        /// For callers that can lose what they put: a crash loses what is not published yet, and nothing else; so
        /// does an exit without ``SharedCache/close(deadline:)-7uv4d`` or ``SharedCache/flush(within:)-6e5rf``. Until it is
        /// published other processes see the value before, and this one does not see what they put meanwhile, which
        /// is replaced then. Where publishing fails, which the events tell, the value before is what all see again.
        case behind
    }

    /// How many puts may wait to be published in the background.
    public struct WriteBehind: Sendable, Equatable {
        /// Bytes of all values that wait; a put that would exceed them waits itself.
        ///
        /// Default: 64 MiB: a second's work of a disk that writes 64 MiB/s.
        public var size: ByteCount
        /// Values that wait.
        ///
        /// Default: 10,000: a second's work at 100 µs each.
        public var count: Int

        /// Limits; both can be left out.
        public init(size: ByteCount = .mebibytes(64), count: Int = 10_000) {
            self.size = size
            self.count = count
        }
    }

    /// What a cache does in the background, and what when it is closed.
    public struct Janitor: Sendable, Equatable {
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
}
