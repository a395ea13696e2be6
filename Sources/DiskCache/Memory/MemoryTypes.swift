// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// What the memory tier keeps: an object that any thread may use.
typealias MemoryItem = AnyObject & Sendable

/// Tells the forms of one key's value apart: its bytes, and what typed views made of them.
struct MemoryForm: Sendable, Hashable {
    /// What the view is known by; nil for bytes.
    private let view: ObjectIdentifier?

    /// The bytes as they are stored.
    static let bytes = MemoryForm(view: nil)

    /// Decoded values, of a view that is known by `view`, such as the metatype of its codec.
    static func decoded(_ view: ObjectIdentifier) -> MemoryForm {
        MemoryForm(view: view)
    }

    /// A number to tell the forms of one key apart by, mostly.
    var fingerprint: UInt64 {
        view.map { UInt64(UInt(bitPattern: $0)) } ?? 0
    }
}

/// What a copy must satisfy to be given out: for the caller to judge, as the tier knows neither disk nor clock.
struct MemoryStamp: Sendable, Equatable {
    /// The word under which the copy may be held; nil where there is no control file.
    var generation: Generation?
    /// Until when it may be given out without a look at the disk; the end of time: for ever.
    var end: Timestamp
    /// When an access has to be noted on disk again.
    var accessDue: Timestamp

    /// - Parameter heldUntil: nil: it may be given out for ever.
    init(
        generation: Generation? = nil,
        heldUntil: Timestamp? = nil,
        accessDue: Timestamp = .distantFuture
    ) {
        self.generation = generation
        end = heldUntil ?? .distantFuture
        self.accessDue = accessDue
    }

    /// Until when by the coarse clock nothing but the generation has to be looked at; the beginning of time
    /// where there is none.
    var due: Timestamp {
        if generation == nil { return .distantPast }
        return end == .distantFuture ? accessDue : min(accessDue, end - .nanoseconds(Self.coarseClockLag))
    }

    /// Whether the coarse clock decides that `end` has not come.
    func isBeforeEnd(_ coarseNow: Timestamp) -> Bool {
        end == .distantFuture || coarseNow.isEarlier(than: end, byNanoseconds: Self.coarseClockLag)
    }

    /// Nanoseconds by which the coarse clock may be late.
    ///
    /// A tick of the kernel, 1 to 10 ms (CONFIG_HZ), where the processor that keeps the time runs. In a virtual
    /// machine the host may stop that one while others run on: Linux lets another take over after 5 ticks
    /// (MAX_STALLED_JIFFIES in kernel/time/tick-sched.c); older kernels, and processors without ticks (nohz_full),
    /// wait for as long as the host does. More than 20 ms were seen. So no kernel promises a bound; a second is
    /// chosen as far beyond what hosts do, not measured. It costs a look at the exact clock for each hit in the last
    /// second of a value's life, no more.
    private static var coarseClockLag: Int64 { 1_000_000_000 }
}

/// What a look at the tier finds, without a judgement.
enum MemoryFinding {
    /// It can be given out, and is counted.
    case hit(any MemoryItem)
    /// There is none.
    case absent
    /// There is one that has to be judged.
    case unsettled
}

/// What a caller finds of a copy's stamp.
enum MemoryVerdict: Sendable {
    /// It can be given out.
    case valid
    /// Its time is up.
    case expired
    /// Something else was, or is being, written for its key.
    case invalidated
}

/// How much the tier holds at most.
struct MemoryLimits: Sendable, Equatable {
    /// Sum of the values' costs.
    var cost: Int
    /// Number of values.
    var count: Int

    /// The cost of the largest value that is held: a quarter of the whole.
    ///
    /// A larger one would push out much of what is in use, and is gone again soon.
    var largestCost: Int { cost == .max ? .max : cost / 4 }
}

/// What became of a value that was offered to the tier.
enum MemoryAdmission: Sendable, Equatable {
    /// It is held.
    case admitted
    /// It costs more than ``MemoryLimits/largestCost``, or the tier is there for none at all.
    case oversized
    /// The tier is frozen.
    case frozen
}

/// A value that the memory tier has let go of.
struct MemoryRemoval: Sendable {
    let key: String
    let form: MemoryForm
    let item: any MemoryItem
    let cost: Int
    let cause: RemovalCause
}

extension MemoryRemoval {
    init(
        _ content: (details: MemoryShard.Details, item: any MemoryItem, frequency: UInt8),
        cost: Int,
        cause: RemovalCause
    ) {
        let (key, form) = (content.details.key, content.details.form)
        self.init(key: key, form: form, item: content.item, cost: cost, cause: cause)
    }
}

/// A value that has a costly part which it can do without for a while.
protocol DiscardableItem: MemoryItem {
    /// What stays of it, at a lower cost, when memory is short; nil while the whole is needed.
    ///
    /// Called on the thread that reacts to the shortage, with no lock of the tier held. What does not cost
    /// less is ignored.
    func discarded() -> (item: any MemoryItem, cost: Int)?
}
