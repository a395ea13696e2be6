// SPDX-License-Identifier: Apache-2.0

/// How much a cache directory may hold, and for how long.
///
/// Limits belong to the directory: they are in its `config.json`, and all processes that use it follow a change
/// within a second. nil means that there is no such limit.
///
/// At 95 % of a limit the janitor of one of the processes evicts the least recently used values until 90 % are
/// left. A put that would exceed 100 % makes room itself, or waits up to a minute while another process does.
/// So a limit holds at every moment, give or take what the file system needs for growing directories.
public struct CacheLimits: Sendable, Equatable {
    /// Bytes on disk, as `du` counts them: values, keys, directories and the cache's own files, which take 3 to
    /// 5 MiB in an empty cache.
    public var maximumSize: ByteCount?
    /// The number of keys.
    public var maximumEntries: Int?
    /// What must stay available on the file system, whoever uses it up.
    public var minimumFree: FreeSpace?
    /// How long ago a value may have been stored before it is removed.
    ///
    /// It may still be returned until a collection removes it, a minute at most. For exact ends use
    /// expirations.
    public var maximumAge: Duration?
    /// How long ago a value may have been used last before it is removed.
    public var maximumIdleTime: Duration?
    /// Bytes of the longest value that is accepted.
    public var maximumValueSize: ByteCount?
    /// Bytes that the log of removals may take; nil for no log.
    public var eventLogSize: ByteCount?
    /// Whether the directory is on a local file system even though it does not look so; nil leaves it as it
    /// was.
    ///
    /// For unknown file systems and FUSE, which are otherwise taken for network file systems. It takes effect
    /// in processes that open the cache afterwards, so end all that have it open. If other machines write to
    /// the file system, processes may return old values.
    public var assumesLocal: Bool?

    /// No limits, or a size alone.
    public init(maximumSize: ByteCount? = nil) {
        self.maximumSize = maximumSize
    }

    /// Whether they bound what the directory takes.
    package var areBounding: Bool { maximumSize != nil || maximumEntries != nil || minimumFree != nil }
}

extension CacheLimits {
    /// How much of a file system must stay available, to everybody.
    public enum FreeSpace: Sendable, Equatable {
        /// This many bytes.
        case bytes(ByteCount)
        /// A share of the file system's size, 0 to 100.
        case percent(Double)

        /// In bytes, on a file system of that size.
        package func bytes(of total: Int64) -> Int64 {
            switch self {
            case .bytes(let bytes): bytes.bytes
            case .percent(let percent): Int64(Double(total) * (Self.plausible(percent) / 100))
            }
        }

        /// As `config.json` has it: a share in hundredths of a per cent.
        var rounded: FreeSpace {
            switch self {
            case .bytes: self
            case .percent(let percent): .percent((Self.plausible(percent) * 100).rounded() / 100)
            }
        }

        static func plausible(_ percent: Double) -> Double { min(100, max(0, percent)) }
    }
}
