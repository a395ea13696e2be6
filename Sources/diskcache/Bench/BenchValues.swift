// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// The keys and values of a benchmark: every process can make each value, and can tell whether bytes that
/// the cache gave out are one.
protocol BenchValues: Sendable {
    /// How many keys there are; they go by their index.
    var count: Int { get }
    func key(_ index: Int) -> String
    func value(_ index: Int, version: Version) -> Data
    func check(_ data: Data, _ index: Int) -> Verdict
}

/// Which of a key's values: every put has one of its own, so that a reader can tell who wrote when.
struct Version: Hashable, Sendable {
    /// The stream of puts that it belongs to: one for each process, whose versions count upwards.
    let stream: UInt32
    let number: UInt32

    /// What a key holds before any process is started.
    static let initial = Version(stream: 0, number: 0)

    /// One of a few values that all processes write again and again, so that bytes that were just given up
    /// are wanted once more while a collection runs.
    static func recurring(_ number: UInt32) -> Version {
        Version(stream: .max, number: number)
    }

    var isRecurring: Bool { stream == .max }
}

/// What is to be said of bytes that a get returned.
enum Verdict: Equatable, Sendable {
    /// They are a value of this key; nil where versions are not told apart.
    case right(Version?)
    case wrong(WrongValue)
}

/// What is wrong with a value.
enum WrongValue: Equatable, Sendable, CustomStringConvertible {
    case length(Int, expected: Int)
    /// It does not even begin like one.
    case noHeader
    /// The header is not whole: its checksum says so.
    case damagedHeader
    case otherKey(Int)
    /// The first byte that is not what key and version make it.
    case damagedBody(offset: Int)
    /// A value that a later one of the same writer had replaced, and this process had seen that.
    case outdated(Version, after: UInt32)

    var description: String {
        switch self {
        case .length(let length, let expected): "\(length) bytes instead of \(expected)"
        case .noHeader: "bytes that are no value"
        case .damagedHeader: "a damaged header"
        case .otherKey(let key): "the value of key \(key)"
        case .damagedBody(let offset): "a wrong byte at \(offset)"
        case .outdated(let version, let seen):
            "number \(version.number) of writer \(version.stream) after number \(seen)"
        }
    }
}

/// Values that prove themselves: a header that says whose they are, and a body that only that key and
/// version have.
///
/// ```
/// "dcbench1"  key  version  length  checksum of these  body: a window of a fixed buffer of noise
///      8       8      8        8        8              length - 40 bytes
/// ```
///
/// Where the window lies follows from key and version, so checking a body is one memcmp with all its bytes.
struct SelfProvingValues: BenchValues {
    static let headerSize = 40
    /// Below that there would hardly be a body.
    static let smallest = 64
    private static let magic: UInt64 = 0x3168_636e_6562_6364
    /// Windows begin in so many places; a megabyte keeps the buffer in the processor's cache.
    private static let places = 1 << 20

    let count: Int
    private let size: Int
    private let noise: Data

    init(count: Int, size: Int) {
        self.count = count
        self.size = size
        noise = Platform.noise(count: Self.places + size, seed: 0x6469_736b)
    }

    func key(_ index: Int) -> String { "bench/\(size)/\(index)" }

    func value(_ index: Int, version: Version) -> Data {
        var data = Data(capacity: size)
        let fields = header(UInt64(index), version)
        for field in fields {
            for shift in stride(from: UInt64(0), to: 64, by: 8) {
                data.append(UInt8(truncatingIfNeeded: field >> shift))
            }
        }
        data.append(body(checksum: fields[4]))
        return data
    }

    func check(_ data: Data, _ index: Int) -> Verdict {
        guard data.count == size else { return .wrong(.length(data.count, expected: size)) }
        guard field(0, of: data) == Self.magic else { return .wrong(.noHeader) }
        let bits = field(2, of: data)
        let version = Version(stream: UInt32(bits >> 32), number: UInt32(truncatingIfNeeded: bits))
        let key = field(1, of: data)
        let expected = header(key, version)
        guard field(3, of: data) == expected[3], field(4, of: data) == expected[4] else {
            return .wrong(.damagedHeader)
        }
        guard key == UInt64(index) else { return .wrong(.otherKey(Int(clamping: key))) }
        let found = data[(data.startIndex + Self.headerSize)...]
        let body = body(checksum: expected[4])
        if found == body { return .right(version) }
        let offset = zip(found, body).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? 0
        return .wrong(.damagedBody(offset: Self.headerSize + offset))
    }

    private func header(_ key: UInt64, _ version: Version) -> [UInt64] {
        let fields = [Self.magic, key, UInt64(version.stream) << 32 | UInt64(version.number), UInt64(size)]
        return fields + [fields.reduce(0) { SplitMix64.mix($0 ^ $1) }]
    }

    private func body(checksum: UInt64) -> Data {
        let start = noise.startIndex + Int(checksum % UInt64(Self.places))
        return noise[start..<(start + size - Self.headerSize)]
    }

    private func field(_ number: Int, of data: Data) -> UInt64 {
        let start = data.startIndex + 8 * number
        return (0..<8).reduce(0) { $0 | UInt64(data[start + $1]) << UInt64(8 * $1) }
    }
}
