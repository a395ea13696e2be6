// SPDX-License-Identifier: Apache-2.0

package import CacheStore

extension CacheLimits {
    /// How much of a file system must stay available, to everybody.
    public enum FreeSpace: Sendable, Equatable, Codable {
        /// This many bytes.
        case bytes(ByteCount)
        /// A share of the file system's size, 0 to 100.
        case percent(Double)

        /// Reads a number of bytes, or a share such as "10%".
        public init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            // If it is not a number it must be text, or decoding throws.
            if let bytes = try? container.decode(ByteCount.self) {
                self = .bytes(bytes)
                return
            }
            let text = try container.decode(String.self)
            guard text.last == "%", let percent = Double(text.dropLast()), (0...100) ~= percent else {
                throw DecodingError.dataCorruptedError(
                    in: container,
                    debugDescription: "\(text) is neither a number of bytes nor a share like 10%"
                )
            }
            self = .percent(percent)
        }

        /// Writes a number of bytes, or a share such as "10%".
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch self {
            case .bytes(let bytes): try container.encode(bytes)
            case .percent(let percent):
                try container.encode(Int(exactly: percent).map { "\($0)%" } ?? "\(percent)%")
            }
        }

        package var floor: FreeSpaceFloor {
            switch self {
            case .bytes(let bytes): .bytes(bytes.bytes)
            case .percent(let percent): .share(min(100, max(0, percent)) / 100)
            }
        }

        package init(_ floor: FreeSpaceFloor) {
            switch floor {
            case .bytes(let bytes): self = .bytes(ByteCount(bytes))
            // Hundredths of a per cent, as the directory's configuration keeps them.
            case .share(let share): self = .percent((share * 10_000).rounded() / 100)
            }
        }
    }
}
