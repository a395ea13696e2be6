// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import Platform

/// What came: the last response, after redirects.
package struct TransportResponse: Sendable {
    package var status = 0
    /// As in the status line: "1.1", "2".
    package var version = ""
    /// In their order; several of a name stay several.
    package var fields: [HeaderField] = []
    /// Where it came from in the end; with what is secret in it.
    package var url = ""
    package var redirects = 0
    /// Connections that had to be made; 0: one was there.
    package var connections = 0
    /// Bytes of the body, also of one that was discarded as far as it was read.
    package var received: Int64 = 0
    /// The body, where it goes to memory.
    package var body = Data()
    /// As ``TransportRequest/digest`` asks; nil where it does not, or where the body was not kept.
    package var digest: SHA256?

    package init() {}

    /// The values of a field, in their order.
    package func values(_ name: String) -> [String] {
        let name = name.lowercased()
        return fields.lazy.filter { $0.isNamed(name) }.map(\.value)
    }

    /// Why the body can't be read as it was meant; nil if it can.
    var contradiction: String? {
        if hasConflictingLengths { return "several lengths of one body" }
        return values("transfer-encoding").contains(where: Self.isCompressed)
            ? "a transfer coding that nobody has asked for" : nil
    }

    /// Whether nobody can say where the body ends (RFC 9112, 6.3).
    private var hasConflictingLengths: Bool {
        var first: String?
        for field in fields where field.isNamed("content-length") {
            if let first, first != field.value { return true }
            first = field.value
        }
        return false
    }

    /// Whether these codings compress (RFC 9112, 7.2).
    ///
    /// Any other but chunked is passed over, as browsers do: none is registered.
    private static func isCompressed(_ codings: String) -> Bool {
        let names = codings.lowercased().split { ", \t".contains($0) }
        return names.contains { ["gzip", "x-gzip", "deflate", "compress", "x-compress"].contains($0) }
    }

    /// The length of the body as it travels, if the server says one, and only one.
    package var contentLength: Int64? {
        let values = Set(values("content-length"))
        return values.count == 1 ? values.first.flatMap { Int64($0) } : nil
    }
}

extension TransportResponse {
    /// Makes one of a head as it came: a status line, then fields, each with its end of line.
    ///
    /// Bytes that are not UTF-8 are taken for Latin-1, as HTTP once had it. A line that begins with a blank
    /// goes on with the field before it (RFC 9112, 5.2); one without a colon is left out.
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

    /// Without blanks and the end of line around it.
    private static func text(_ head: Span<UInt8>, _ range: Range<Int>) -> String {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, isBlank(head[start]) { start += 1 }
        while start < end, isBlank(head[end - 1]) { end -= 1 }
        let bytes = head.extracting(start..<end)
        // What fails is the text, which is not UTF-8.
        if let text = try? UTF8Span(validating: bytes) { return String(copying: text) }
        return String(String.UnicodeScalarView(bytes.indices.map { Unicode.Scalar(bytes[$0]) }))
    }
}
