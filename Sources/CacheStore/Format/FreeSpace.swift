// SPDX-License-Identifier: Apache-2.0

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
