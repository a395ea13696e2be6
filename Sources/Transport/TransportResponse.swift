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
        return fields.filter { $0.name.lowercased() == name }.map(\.value)
    }

    /// Whether nobody can say where the body ends (RFC 9112, 6.3).
    var hasConflictingLengths: Bool { Set(values("content-length")).count > 1 }

    /// The length of the body as it travels, if the server says one, and only one.
    package var contentLength: Int64? {
        let values = Set(values("content-length"))
        return values.count == 1 ? values.first.flatMap { Int64($0) } : nil
    }
}

extension TransportResponse {
    /// Makes one of a head as it came: a status line, then fields, each with its end of line.
    ///
    /// Bytes that are not UTF-8 are taken for Latin-1, as HTTP once had it. A line that begins with a blank goes on with
    /// the field before it (RFC 9112, 5.2); one without a colon is left out.
    init(head: some Collection<UInt8>) {
        self.init()
        let lines = head.split(omittingEmptySubsequences: true) { $0 == 0x0A }
        guard let first = lines.first else { return }
        let start = Self.text(first).split(separator: " ")
        version = String(start.first?.drop { $0 != "/" }.dropFirst() ?? "")
        for line in lines.dropFirst() {
            if let blank = line.first, blank == 0x20 || blank == 0x09 {
                guard let last = fields.indices.last else { continue }
                fields[last].value += " " + Self.text(line)
                continue
            }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            let value = line[line.index(after: colon)...]
            fields.append(HeaderField(Self.text(line[..<colon]), Self.text(value)))
        }
    }

    /// Without blanks and the end of line around it.
    private static func text(_ bytes: some Collection<UInt8>) -> String {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
        var bytes = Array(bytes.drop(while: isBlank))
        while let last = bytes.last, isBlank(last) { bytes.removeLast() }
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}
