// SPDX-License-Identifier: Apache-2.0

/// How much a cache directory may hold, and for how long.
///
/// Limits belong to the directory: they are stored in its `config.json`, and all processes that use the directory apply a
/// change within a second. nil means that there is no such limit.
///
/// At 95 % of a limit the janitor of one of the processes evicts the least recently used values until 90 % are left. A
/// put that would exceed 100 % makes room itself, or waits up to a minute while another process does. So a limit holds at
/// every moment, with two exceptions: the space that the file system needs for growing directories, and the keys of puts
/// that are delayed just before they create them.
public struct CacheLimits: Sendable, Equatable {
    /// The maximum number of bytes on disk, as `du` counts them.
    ///
    /// They include values, keys, directories and the cache's own files, which take 3 to 5 MiB in an empty cache.
    public var maximumSize: ByteCount?
    /// The maximum number of keys.
    public var maximumEntries: Int?
    /// The space that must stay available on the file system, no matter which program uses it.
    public var minimumFree: FreeSpace?
    /// The maximum time since a value was stored; older values are removed.
    ///
    /// An older value may still be returned from disk until a collection removes it, after a minute at most, but not from
    /// memory. For exact times use expirations.
    public var maximumAge: Duration?
    /// The maximum time since a value was last used; values unused for longer are removed.
    public var maximumIdleTime: Duration?
    /// The size of the largest value that is accepted.
    public var maximumValueSize: ByteCount?
    /// The maximum size of the log of removals, 64 KiB at least; nil for no log.
    public var eventLogSize: ByteCount?
    /// Whether the directory is on a local file system that is not recognized as one; nil leaves the setting unchanged.
    ///
    /// Use true for unknown file systems and FUSE, which are otherwise treated as network file systems. The setting takes
    /// effect in processes that open the cache afterwards, so end all processes that have it open. If other machines
    /// write to the file system, processes may return old values.
    public var assumesLocal: Bool?
    /// Whether processes may share memory through a file in `/dev/shm`, on file systems whose files can't be mapped
    /// safely (XFS, Btrfs, overlay and others); nil leaves the setting unchanged, which is true at first.
    ///
    /// Use false for containers that each have their own `/dev/shm`. Then a hit in memory costs one system call, to check
    /// the record, and the usage is not counted, so limits hold only when a collection ends. Processes that have the
    /// cache open apply a change within a second. Before you set it to true again, end all processes that have the cache
    /// open.
    public var sharesMemory: Bool?

    /// Creates limits that are all nil, except for the maximum size if it is given.
    public init(maximumSize: ByteCount? = nil) {
        self.maximumSize = maximumSize
    }

    /// Whether a limit on size, entries or free space is set.
    package var areBounding: Bool { maximumSize != nil || maximumEntries != nil || minimumFree != nil }
}

extension CacheLimits {
    /// How much of a file system must stay available to all its users.
    public enum FreeSpace: Sendable, Equatable {
        /// This many bytes.
        case bytes(ByteCount)
        /// A percentage of the file system's size, 0 to 100.
        case percent(Double)

        /// Returns the number of bytes on a file system of this size.
        package func bytes(of total: Int64) -> Int64 {
            switch self {
            case .bytes(let bytes): bytes.bytes
            case .percent(let percent): Int64(Double(total) * (Self.plausible(percent) / 100))
            }
        }

        /// The value as stored in `config.json`: a percentage is rounded to two decimal places.
        var rounded: FreeSpace {
            switch self {
            case .bytes: self
            case .percent(let percent): .percent((Self.plausible(percent) * 100).rounded() / 100)
            }
        }

        static func plausible(_ percent: Double) -> Double { min(100, max(0, percent)) }
    }
}

/// A number of bytes.
public struct ByteCount: Sendable, Hashable, Comparable, Codable {
    /// The number.
    public let bytes: Int64

    /// Creates this many bytes; a negative number counts as 0.
    public init(_ bytes: Int64) {
        self.bytes = max(0, bytes)
    }

    /// This many bytes.
    public static func bytes(_ count: Int) -> ByteCount { ByteCount(Int64(count)) }

    /// This many times 1024 bytes, at most `Int64.max`.
    public static func kibibytes(_ count: Int) -> ByteCount { scaled(count, 1 << 10) }

    /// This many times 1024² bytes, at most `Int64.max`.
    public static func mebibytes(_ count: Int) -> ByteCount { scaled(count, 1 << 20) }

    /// This many times 1024³ bytes, at most `Int64.max`.
    public static func gibibytes(_ count: Int) -> ByteCount { scaled(count, 1 << 30) }

    private static func scaled(_ count: Int, _ unit: Int64) -> ByteCount {
        let (product, overflow) = Int64(count).multipliedReportingOverflow(by: unit)
        return ByteCount(overflow ? (count > 0 ? .max : 0) : product)
    }

    /// Orders by number.
    public static func < (left: ByteCount, right: ByteCount) -> Bool { left.bytes < right.bytes }

    /// Reads a bare number.
    public init(from decoder: any Decoder) throws {
        self.init(try Int64(from: decoder))
    }

    /// Writes a bare number.
    public func encode(to encoder: any Encoder) throws {
        try bytes.encode(to: encoder)
    }
}
