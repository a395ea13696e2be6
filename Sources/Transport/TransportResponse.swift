// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import Platform

/// A response.
package struct TransportResponse: Sendable {
    package var status = 0
    /// The version in the status line: "1.1", "2".
    package var version = ""
    /// The header fields in the order received; repeated fields remain separate.
    package var fields: [HeaderField] = []
    /// The number of connections that were opened; 0 if existing ones were used.
    package var connections = 0
    /// The number of bytes of the body that were read, even if the body was discarded.
    package var received: Int64 = 0
    /// The body, if its output is memory.
    package var body = Data()
    package init() {}

    /// Returns the values of a field, in order.
    package func values(_ name: String) -> [String] {
        let name = name.lowercased()
        return fields.lazy.filter { $0.isNamed(name) }.map(\.value)
    }

    /// When the server sent the response, by its own clock; nil if it does not say.
    package var date: Timestamp? {
        guard let text = values("date").first, let library = try? LibCurl.system.get(),
            let seconds = library.seconds(ofDate: text)
        else { return nil }
        return Timestamp(nanoseconds: 0) + .seconds(seconds)
    }

    /// Why the body can't be read as the server meant it; nil if it can.
    var contradiction: String? {
        if hasConflictingLengths { return "several lengths of one body" }
        return values("transfer-encoding").contains(where: Self.isCompressed)
            ? "a transfer coding that nobody has asked for" : nil
    }

    /// Whether the end of the body is ambiguous (RFC 9112, section 6.3).
    ///
    /// A recipient may merge repeated fields into one list; libcurl reads only its first number.
    private var hasConflictingLengths: Bool { Set(lengths).count > 1 }

    private var lengths: [Substring] {
        values("content-length").flatMap { $0.split { ", \t".contains($0) } }
    }

    /// Returns whether one of these transfer codings compresses (RFC 9112, section 7.2).
    ///
    /// Any other coding, except chunked, is ignored, as in browsers: no others are registered.
    private static func isCompressed(_ codings: String) -> Bool {
        let names = codings.lowercased().split { ", \t".contains($0) }
        return names.contains { ["gzip", "x-gzip", "deflate", "compress", "x-compress"].contains($0) }
    }

    /// The length of the body as transferred, in bytes; nil unless the server states exactly one.
    package var contentLength: Int64? {
        let lengths = Set(lengths)
        return lengths.count == 1 ? lengths.first.flatMap { Int64($0) } : nil
    }
}

extension TransportResponse {
    /// Parses a received head, which consists of a status line and field lines, each with its line ending.
    ///
    /// Bytes that are not UTF-8 are treated as Latin-1, HTTP's former encoding. A line that begins with white space
    /// continues the previous field (RFC 9112, section 5.2); a line without a colon is ignored.
    init(head: Span<UInt8>) {
        self.init()
        fields.reserveCapacity(16)
        var start = 0
        while start < head.count {
            var end = start
            while end < head.count, head[end] != 0x0A { end += 1 }
            if start == 0 {
                let slash = (start..<end).first { head[$0] == UInt8(ascii: "/") } ?? end
                let blank = (slash..<end).first { head[$0] == 0x20 } ?? end
                version = Self.text(head, min(slash + 1, blank)..<blank)
            } else {
                readField(head, start..<end)
            }
            start = end + 1
        }
    }

    private mutating func readField(_ head: Span<UInt8>, _ line: Range<Int>) {
        if let first = line.first, Self.isBlank(head[first]) {
            guard let last = fields.indices.last else { return }
            fields[last].value += " " + Self.text(head, line)
        } else if let colon = line.first(where: { head[$0] == UInt8(ascii: ":") }) {
            let name = Self.text(head, line.lowerBound..<colon)
            fields.append(HeaderField(name, Self.text(head, colon + 1..<line.upperBound)))
        }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }

    /// Returns the text in `range` without white space and line ending around it.
    private static func text(_ head: Span<UInt8>, _ range: Range<Int>) -> String {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, isBlank(head[start]) { start += 1 }
        while start < end, isBlank(head[end - 1]) { end -= 1 }
        let bytes = head.extracting(start..<end)
        // Validation fails if the text is not UTF-8.
        if let text = try? UTF8Span(validating: bytes) { return String(copying: text) }
        return String(String.UnicodeScalarView(bytes.indices.map { Unicode.Scalar(bytes[$0]) }))
    }
}
