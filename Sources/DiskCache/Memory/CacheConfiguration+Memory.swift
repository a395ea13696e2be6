// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import Platform

extension CacheConfiguration {
    /// How much of a cache a process keeps in its own memory, what, and for how long.
    ///
    /// Copies there are as good as the value on disk: the next get notices a change by any process.
    public struct Memory: Sendable, Equatable {
        /// The sum of the values' costs: for bytes their number, for decoded values what their codec says.
        ///
        /// Default: 64 MiB, which a worker process can spare and which holds the hottest tenth of a cache of
        /// 640 MiB. By Zipf's law that tenth serves about three gets of four.
        public var costLimit: ByteCount
        /// How many values; nil for one per 256 bytes of the cost limit, since even an empty value takes about
        /// that much with its key and its place, or for as many as cost ``valueCost`` if that is less and not 0.
        ///
        /// Where a codec or a put (``PutOptions/memoryCost``) counts costs in another unit than bytes, give a number.
        /// Default: nil.
        public var countLimit: Int?
        /// Whether to give up some values when the system runs short of memory.
        ///
        /// Default: true.
        public var shrinksUnderPressure: Bool
        /// Whether a ``DiscardableValue`` then loses the part that it can make again, before any value goes; if false
        /// it goes or stays as a whole.
        ///
        /// Default: true.
        public var discardsParts = true
        /// How long a value stays in memory after it was stored or read from disk, if it does not expire before; nil
        /// for as long as there is room.
        ///
        /// A get that comes later reads it from disk again. ``PutOptions/memoryLifetime`` is that of one put. A
        /// negative one counts as 0. Default: nil.
        public var lifetime: Duration?
        /// What each value costs, whatever its size; nil for the number of its bytes, or what its codec says.
        ///
        /// ``PutOptions/memoryCost`` is that of one put. Default: nil.
        public var valueCost: Int?
        /// Where values are kept if ``PutOptions/keeps`` is nil.
        ///
        /// With ``CacheConfiguration/Keeping/diskOnly`` values that are read from disk are not kept in memory either.
        ///
        /// Default: in memory and on disk.
        public var keeps = Keeping.memoryAndDisk
        /// Whether ``CacheEvent/removedFromMemory(key:cause:cost:value:)`` has the value that has left.
        ///
        /// The value then lives as long as the event. Default: false.
        public var eventsCarryValues = false

        /// Limits, all of which are optional.
        public init(
            costLimit: ByteCount = .mebibytes(64),
            countLimit: Int? = nil,
            shrinksUnderPressure: Bool = true
        ) {
            self.costLimit = costLimit
            self.countLimit = countLimit
            self.shrinksUnderPressure = shrinksUnderPressure
        }

        /// A share of the memory that this process may use: the machine's, or what its control group or one
        /// above it allows, if that is less.
        ///
        /// It is determined at this call, from a few files in `/proc` and `/sys/fs/cgroup`; ``costLimit`` has the result. If the
        /// kernel does not tell, it is the default cost limit.
        ///
        /// - Parameters:
        ///   - share: 0.05 for a twentieth. Less than 0 counts as 0, more than 1 as 1.
        ///   - countLimit: how many values; nil for one per 256 bytes.
        ///   - shrinksUnderPressure: whether to give up some values when the system runs short of memory.
        public init(share: Double, countLimit: Int? = nil, shrinksUnderPressure: Bool = true) {
            self.init(
                costLimit: Self.limit(share, of: MemoryAllowance.bytes()),
                countLimit: countLimit,
                shrinksUnderPressure: shrinksUnderPressure
            )
        }

        /// Nothing is kept: every get reads the disk.
        public static let none = Memory(costLimit: .bytes(0))

        /// This share of `allowance`; the default limit if that is nil.
        static func limit(_ share: Double, of allowance: Int64?) -> ByteCount {
            guard let allowance else { return Memory().costLimit }
            // Not a number counts as none.
            let share = share > 0 ? min(share, 1) : 0
            // A number that no machine has would not fit once it is rounded.
            return ByteCount(Int64(Double(max(0, min(allowance, 1 << 60))) * share))
        }

        var limits: MemoryLimits {
            let cost = Int(clamping: costLimit.bytes)
            return MemoryLimits(cost: cost, count: max(0, countLimit ?? max(1, cost / leastCost)))
        }

        /// What a value costs at least, for the default count limit.
        private var leastCost: Int {
            // Costs that are counted in another unit say how many values there may be; one of nothing does not.
            guard let valueCost, valueCost > 0 else { return 256 }
            return min(256, valueCost)
        }

        var isEnabled: Bool { costLimit.bytes > 0 && countLimit != 0 }

        /// How a put with these options is kept.
        func terms(of options: PutOptions) -> MemoryTerms {
            MemoryTerms(
                keeps: options.keeps ?? keeps,
                lifetime: options.memoryLifetime ?? lifetime,
                cost: options.memoryCost ?? valueCost
            )
        }

        /// How values that were read from disk are kept.
        var terms: MemoryTerms { MemoryTerms(keeps: keeps, lifetime: lifetime, cost: valueCost) }
    }

    /// Where a value is kept.
    public enum Keeping: Sendable, Equatable {
        /// On disk, where all processes find it, and in the memory of the process that has stored it.
        case memoryAndDisk
        /// In the memory of the process that stores it, alone: no other process sees it.
        ///
        /// A value on disk is removed: other processes miss from then on, and each computes its own value in
        /// `value(forKey:orCompute:)`. Any put or removal of the key, by any process, ends the value, but not another process's
        /// computation of its own; and so do its expiration, the limits of memory, the end of the process, and each
        /// ``SharedCache/removeAll(_:)`` and ``SharedCache/expireAll(_:staleFor:)``, whatever it selects. So does a put or
        /// a removal of another key that shares its word in the table of generations. Only `get`, `value`, `hit` and
        /// those of views find it, in the form in which it was stored, as bytes or as the value of one codec; all other
        /// calls see the disk only. The value is not kept if memory holds no values or is frozen, if it costs more than a quarter
        /// of the limit, or if there is no control file.
        ///
        /// It is encoded and hashed only if its entry is asked for (``CacheHit/entry``). So its cost is what the put, the
        /// configuration or the codec states, and for bytes their number; a codec that states none has it count as
        /// nothing, so that only the limit of the number of values holds.
        ///
        /// Accesses don't prolong it. A put takes three system calls, a computed value none or one, or four if there is an entry on
        /// disk. Files, `putIfAbsent`, `update` and `increment` store on disk in any case.
        case memoryOnly
        /// On disk alone: the process that stores it does not keep it in memory.
        ///
        /// Whether a later get keeps the value in memory depends on the configuration of its process
        /// (``CacheConfiguration/Memory/keeps``).
        case diskOnly
    }
}

/// How one value is kept in memory.
struct MemoryTerms: Sendable {
    var keeps = CacheConfiguration.Keeping.memoryAndDisk
    /// The longest time in memory.
    var lifetime: Duration?
    /// The value's cost; nil: by its bytes or its codec.
    var cost: Int?

    /// Until when it may be given out without a look at the disk; nil: for ever.
    ///
    /// - Parameter end: the same as far as its record tells.
    func end(_ end: Timestamp?, from start: Timestamp) -> Timestamp? {
        guard let lifetime else { return end }
        return min(end ?? .distantFuture, start + max(.zero, lifetime))
    }
}
