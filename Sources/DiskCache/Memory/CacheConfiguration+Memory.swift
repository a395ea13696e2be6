// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import Platform

extension CacheConfiguration {
    /// The memory tier of a process: which values it keeps, how many, and for how long.
    ///
    /// A value in memory is as current as on disk: a get detects if any process has changed it.
    public struct Memory: Sendable, Equatable {
        /// The maximum sum of the values' costs: the cost of bytes is their number, that of a decoded value is stated by
        /// its codec.
        ///
        /// Default: 64 MiB, which a worker process can spare, and which holds the most requested tenth of a cache of 640
        /// MiB. By Zipf's law that tenth serves about three of four gets.
        public var costLimit: ByteCount
        /// The maximum number of values; nil for the cost limit divided by 256, or by ``valueCost`` if that is between 1
        /// and 255.
        ///
        /// Even an empty value takes about 256 bytes, with its key and its place in the tier.
        ///
        /// If a codec or a put (``PutOptions/memoryCost``) counts costs in another unit than bytes, set this limit.
        /// Default: nil.
        public var countLimit: Int?
        /// Whether to release some values when the system runs short of memory.
        ///
        /// Default: true.
        public var shrinksUnderPressure: Bool
        /// Whether, if the system runs short of memory, each ``DiscardableValue`` drops the part that it can restore before
        /// any value is evicted; if false, values are only evicted as a whole.
        ///
        /// Default: true.
        public var discardsParts = true
        /// How long a value stays in memory after it was stored or read from disk, unless it expires earlier; nil for as
        /// long as there is room.
        ///
        /// A later get reads it from disk again. ``PutOptions/memoryLifetime`` sets it for one put. A negative lifetime
        /// counts as 0. Default: nil.
        public var lifetime: Duration?
        /// The cost of each value, whatever its size; nil for the number of its bytes, or the cost that its codec states.
        ///
        /// ``PutOptions/memoryCost`` sets it for one put. Default: nil.
        public var valueCost: Int?
        /// Where values are kept if ``PutOptions/keeps`` is nil.
        ///
        /// With ``CacheConfiguration/Keeping/diskOnly`` values that are read from disk are not kept in memory either.
        ///
        /// Default: in memory and on disk.
        public var keeps = Keeping.memoryAndDisk
        /// Whether ``CacheEvent/removedFromMemory(key:cause:cost:value:)`` contains the removed value.
        ///
        /// The value then lives as long as the event. Default: false.
        public var eventsCarryValues = false

        /// Creates a configuration from limits, all of which are optional.
        public init(
            costLimit: ByteCount = .mebibytes(64),
            countLimit: Int? = nil,
            shrinksUnderPressure: Bool = true
        ) {
            self.costLimit = costLimit
            self.countLimit = countLimit
            self.shrinksUnderPressure = shrinksUnderPressure
        }

        /// Creates a configuration whose cost limit is a share of the memory that this process may use: the machine's
        /// memory, or the limit of its control group or of a group above it, if that is lower.
        ///
        /// This call determines that memory, from a few files in `/proc` and `/sys/fs/cgroup`, and sets ``costLimit``. If
        /// the kernel does not report it, the default cost limit applies.
        ///
        /// - Parameters:
        ///   - share: the share: 0.05 for a twentieth. Less than 0 counts as 0, more than 1 as 1.
        ///   - countLimit: the maximum number of values; nil for one per 256 bytes.
        ///   - shrinksUnderPressure: whether to release some values when the system runs short of memory.
        public init(share: Double, countLimit: Int? = nil, shrinksUnderPressure: Bool = true) {
            self.init(
                costLimit: Self.limit(share, of: MemoryAllowance.bytes()),
                countLimit: countLimit,
                shrinksUnderPressure: shrinksUnderPressure
            )
        }

        /// Keeps no values in memory: every get reads the disk.
        public static let none = Memory(costLimit: .bytes(0))

        /// Returns this share of `allowance`; the default limit if that is nil.
        static func limit(_ share: Double, of allowance: Int64?) -> ByteCount {
            guard let allowance else { return Memory().costLimit }
            // NaN counts as 0.
            let share = share > 0 ? min(share, 1) : 0
            // Clamped to more than any machine has: `Int64.max`, rounded to a `Double`, would overflow.
            return ByteCount(Int64(Double(max(0, min(allowance, 1 << 60))) * share))
        }

        var limits: MemoryLimits {
            let cost = Int(clamping: costLimit.bytes)
            return MemoryLimits(cost: cost, count: max(0, countLimit ?? max(1, cost / leastCost)))
        }

        /// The minimum cost of a value, for the default count limit.
        private var leastCost: Int {
            // A fixed cost per value determines how many values fit, unless it is 0.
            guard let valueCost, valueCost > 0 else { return 256 }
            return min(256, valueCost)
        }

        var isEnabled: Bool { costLimit.bytes > 0 && countLimit != 0 }

        /// Returns how memory keeps a value that is put with these options.
        func terms(of options: PutOptions) -> MemoryPolicy {
            MemoryPolicy(
                keeps: options.keeps ?? keeps,
                lifetime: options.memoryLifetime ?? lifetime,
                cost: options.memoryCost ?? valueCost
            )
        }

        /// How memory keeps values that were read from disk.
        var terms: MemoryPolicy { MemoryPolicy(keeps: keeps, lifetime: lifetime, cost: valueCost) }
    }

    /// Where a value is kept.
    public enum Keeping: Sendable, Equatable {
        /// On disk, where all processes find it, and in the memory of the process that has stored it.
        case memoryAndDisk
        /// Only in the memory of the process that stores it: no other process sees it.
        ///
        /// If the key has a value on disk, that is removed: other processes miss from then on, and each computes its own
        /// value in `value(forKey:orCompute:)`.
        ///
        /// The value is dropped when any process puts or removes the key, except that a process may compute its own
        /// memory-only value. It is also dropped when it expires, when it is evicted for the limits of memory, when the
        /// process ends, by each ``SharedCache/removeAll(_:)`` and ``SharedCache/expireAll(_:staleFor:)``, whatever the
        /// selection, and when any process puts or removes another key that shares its word in the generation table. It is
        /// not kept at all if memory holds no values or is frozen, if it costs more than a quarter of the limit, or if
        /// there is no control file.
        ///
        /// Only `get`, `value`, `hit` and their counterparts in views find the value, and only in the form in which it was
        /// stored: as bytes, or as the value of one codec. All other calls see only the disk.
        ///
        /// The value is encoded and hashed only if its entry is requested (``CacheHit/entry``). So its cost is the one that
        /// the put, the configuration or the codec states; for bytes it is their number. If the codec states no cost, the
        /// cost is 0, so that only the count limit applies.
        ///
        /// Accesses don't extend its expiration. A put takes five system calls, a computed value none or one, or four if
        /// there is an entry on disk. Files, `putIfAbsent`, `update` and `increment` store on disk in any case.
        case memoryOnly
        /// Only on disk: the process that stores it does not keep it in memory.
        ///
        /// Whether a later get keeps the value in memory depends on the configuration of its process
        /// (``CacheConfiguration/Memory/keeps``).
        case diskOnly
    }
}

/// How one value is kept in memory.
struct MemoryPolicy: Sendable {
    var keeps = CacheConfiguration.Keeping.memoryAndDisk
    /// The maximum time in memory.
    var lifetime: Duration?
    /// The value's cost; nil if its bytes or its codec determine it.
    var cost: Int?

    /// Returns until when the value may be returned without reading the disk; nil for forever.
    ///
    /// - Parameter end: the end according to the value's record.
    func end(_ end: Timestamp?, from start: Timestamp) -> Timestamp? {
        guard let lifetime else { return end }
        return min(end ?? .distantFuture, start + max(.zero, lifetime))
    }

    /// Returns the validity of a value that was written; nil if memory may not hold it.
    func validity(of record: Record, writtenAt generation: Generation?) -> MemoryValidity? {
        guard let generation, keeps != .diskOnly else { return nil }
        let end = end(record.heldUntil, from: record.created)
        return MemoryValidity(generation: generation, heldUntil: end)
    }
}
