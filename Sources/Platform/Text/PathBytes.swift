// SPDX-License-Identifier: Apache-2.0

/// The conversion of paths, which are bytes and need not be UTF-8, to text and back.
///
/// Each byte that is not part of valid UTF-8 is represented in the text by one of the last 128 private code points of
/// Unicode. Python does the same (`PEP 383`), with code points that a Swift string can't contain. The calls that take a
/// path from the user convert these code points back to the bytes.
extension String {
    /// The code points that represent the bytes 0x80 to 0xff.
    private static let bytes: ClosedRange<UInt32> = 0x10_ff80...0x10_ffff

    /// Creates the text of a path.
    package init(pathBytes bytes: [UInt8]) {
        // If the path itself contains one of these code points, each byte of that code point is represented by a code
        // point.
        if let text = String(validating: bytes, as: UTF8.self), !text.hasForeignBytes {
            self = text
            return
        }
        self = ""
        var rest = bytes[...]
        while let first = rest.first {
            // The length of a UTF-8 sequence follows from its first byte, RFC 3629.
            let length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4
            if let text = String(validating: rest.prefix(length), as: UTF8.self), !text.hasForeignBytes {
                self += text
                rest = rest.dropFirst(length)
            } else {
                if let scalar = Unicode.Scalar(Self.bytes.lowerBound + UInt32(first) - 0x80) {
                    unicodeScalars.append(scalar)
                }
                rest = rest.dropFirst()
            }
        }
    }

    /// Whether the text represents bytes that are not valid UTF-8.
    package var hasForeignBytes: Bool {
        // 0xf4 is the first UTF-8 byte of these code points.
        utf8.contains(0xf4) && unicodeScalars.contains { Self.bytes.contains($0.value) }
    }

    /// The bytes of the path.
    package var pathBytes: [UInt8] {
        guard hasForeignBytes else { return Array(utf8) }
        var bytes: [UInt8] = []
        for scalar in unicodeScalars {
            if Self.bytes.contains(scalar.value) {
                bytes.append(UInt8(truncatingIfNeeded: scalar.value - Self.bytes.lowerBound + 0x80))
            } else {
                bytes += Array(String(scalar).utf8)
            }
        }
        return bytes
    }

    /// Passes the bytes of the path to `body` as a C string, which is valid while `body` runs.
    ///
    /// - Throws: Also ``Errno/invalidArgument`` for a path with a NUL.
    @unsafe
    func withPath<Result: ~Copyable>(
        _ body: (UnsafePointer<CChar>) throws(Errno) -> Result
    ) throws(Errno) -> Result {
        let bytes = pathBytes + [0]
        // The kernel would use only the part before the NUL.
        if bytes.dropLast().contains(0) { throw .invalidArgument }
        return try unsafe bytes.span.withUnsafeBytes { (buffer) throws(Errno) in
            guard let base = buffer.baseAddress else { throw .invalidArgument }
            return try unsafe body(base.assumingMemoryBound(to: CChar.self))
        }
    }
}
