// SPDX-License-Identifier: Apache-2.0

/// How much of a cache a process keeps in its own memory.
///
/// Copies there are as good as the value on disk: a change by any process is noticed by the next get.
public struct MemoryConfiguration: Sendable, Equatable {
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
    public static let none = MemoryConfiguration(costLimit: .bytes(0))

    var limits: MemoryLimits {
        let cost = Int(clamping: costLimit.bytes)
        return MemoryLimits(cost: cost, count: max(0, countLimit ?? max(1, cost / 256)))
    }

    var isEnabled: Bool { costLimit.bytes > 0 && countLimit != 0 }
}

/// When a put returns.
public enum WritePolicy: Sendable, Equatable {
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
public struct WriteBehindLimits: Sendable, Equatable {
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
