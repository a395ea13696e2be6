// SPDX-License-Identifier: Apache-2.0

import Platform

/// A SHA-256 digest, which names a value by its content and an entry by its key.
public struct Digest: Sendable {
    /// The bytes in memory order.
    ///
    /// They are stored as words because the compiler passes four words in four registers, but splits and reassembles 32
    /// separate bytes, one by one, at each function call.
    let rawWords: InlineArray<4, UInt64>

    package init(bytes: InlineArray<32, UInt8>) {
        rawWords = unsafe unsafeBitCast(bytes, to: InlineArray<4, UInt64>.self)
    }

    /// Creates a digest from its words of 8 bytes, as ``word(_:)`` returns them.
    init(words: InlineArray<4, UInt64>) {
        rawWords = [
            words[0].littleEndian, words[1].littleEndian, words[2].littleEndian, words[3].littleEndian,
        ]
    }

    package var bytes: InlineArray<32, UInt8> {
        unsafe unsafeBitCast(rawWords, to: InlineArray<32, UInt8>.self)
    }

    /// Computes the digest of `content`.
    ///
    /// - Complexity: O(*n*), about 0.6 ms per MiB with SHA instructions.
    package init(of content: Span<UInt8>) {
        self.init(bytes: SHA256.hash(content))
    }

    /// Computes the digest that names the entry of `key`, from its UTF-8 bytes without any normalization.
    package init(ofKey key: String) {
        self.init(of: key.utf8Span.span)
    }

    /// Computes the digest that names the entry of `key` in `space`.
    package init(ofKey key: String, in space: KeySpace) {
        guard space != .callers else {
            self.init(ofKey: key)
            return
        }
        let bytes = space.mark + key.utf8
        self.init(of: bytes.span)
    }

    /// Returns one of the four words of 8 bytes, read as little-endian.
    @inline(__always)
    package func word(_ number: Int) -> UInt64 {
        UInt64(littleEndian: rawWords[number])
    }

    /// Returns one of the 32 bytes.
    @inline(__always)
    package func byte(_ number: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: word(number / 8) >> UInt64(number % 8 * 8))
    }
}

extension Digest {
    /// Parses 64 lowercase hexadecimal digits; nil for anything else.
    package init?(hexadecimal digits: Span<UInt8>) {
        guard digits.count == 64 else { return nil }
        var bytes = InlineArray<32, UInt8>(repeating: 0)
        var faults: UInt8 = 0
        for index in 0..<32 {
            let high = Self.value(ofDigit: digits[2 &* index])
            let low = Self.value(ofDigit: digits[2 &* index &+ 1])
            faults |= high | low
            bytes[index] = high &<< 4 | low
        }
        guard faults < 16 else { return nil }
        self.init(bytes: bytes)
    }

    /// Parses 64 lowercase hexadecimal digits; nil for anything else.
    public init?(hexadecimal text: some StringProtocol) {
        self.init(hexadecimal: String(text).utf8Span.span)
    }

    /// Returns 0 to 15, or more for a byte that is not a digit.
    ///
    /// It has no branch, because the processor would mispredict one half of the time.
    static func value(ofDigit digit: UInt8) -> UInt8 {
        let number = digit &- UInt8(ascii: "0")
        let letter = digit &- UInt8(ascii: "a")
        let ofNumber: UInt8 = number < 10 ? number : 0xff
        let ofLetter: UInt8 = letter < 6 ? letter &+ 10 : 0xff
        return ofNumber & ofLetter
    }
}

extension Digest: Hashable {
    /// Whether all bytes are the same.
    public static func == (left: Digest, right: Digest) -> Bool {
        left.word(0) == right.word(0) && left.word(1) == right.word(1)
            && left.word(2) == right.word(2) && left.word(3) == right.word(3)
    }

    /// Feeds 8 of the bytes, which are uniformly distributed, into the hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(word(0))
    }
}

extension Digest: CustomStringConvertible {
    /// 64 lowercase hexadecimal digits, as `sha256sum` prints them.
    public var description: String {
        var path = RelativePath()
        path.append(hexadecimal: rawWords)
        return path.description
    }
}
