// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DiskCacheHTTP

/// A row of a test table: messages as texts, and the expected result.
///
/// A message is `word | word | Name: value | …`; each part is optional. Words are a status, a method, a URL, a
/// body range (`0-4/10`), and `requested=-5`, `received=2` (seconds). The longest names are abbreviated: CC is
/// Cache-Control, CR Content-Range, IMS If-Modified-Since, INM If-None-Match, LM Last-Modified. A value like
/// `@60` is the date that many seconds after ``begin``. The default request is GET of `https://a/x`; a stored
/// response by default has a complete body of ten bytes and was received at ``begin``.
struct Row: Sendable, CustomTestStringConvertible {
    static let begin = HTTPDate(seconds: 1_700_000_000)

    let section: String
    let stored: String
    let request: String
    let response: String
    let now: Int
    let mode: FetchMode
    let expected: String

    init(
        _ section: String,
        stored: String = "",
        request: String = "",
        response: String = "",
        now: Int = 0,
        mode: FetchMode = .standard,
        _ expected: String
    ) {
        (self.section, self.stored, self.request, self.response) = (section, stored, request, response)
        (self.now, self.mode, self.expected) = (now, mode, expected)
    }

    var testDescription: String {
        ["\(section):", stored, request, response, "\(now) \(mode.rawValue)", "→ \(expected)"]
            .filter { !$0.isEmpty }.joined(separator: "  ")
    }

    /// The date ``now`` seconds after ``begin``.
    var moment: HTTPDate { Self.begin.adding(now) }

    /// Parses ``request``, or `text` instead.
    func request(_ text: String? = nil) throws -> HTTPRequest {
        let words = Self.words(text ?? request)
        let url = words.first { $0.contains("://") } ?? "https://a/x"
        let method = words.first { $0.allSatisfy { $0.isUppercase || $0 == "-" } } ?? "GET"
        return HTTPRequest(method, try #require(HTTPURL(url)), Self.fields(text ?? request))
    }

    func response(_ status: Int = 200) -> HTTPResponse {
        HTTPResponse(Self.words(response).compactMap { Int($0) }.first ?? status, Self.fields(response))
    }

    /// The stored response, or nil if the text is empty.
    func storedResponse() throws -> StoredResponse? { stored.isEmpty ? nil : try Self.stored(stored) }

    static func stored(_ text: String) throws -> StoredResponse {
        let words = words(text)
        func seconds(_ name: String) -> HTTPDate {
            let value = words.first { $0.hasPrefix(name + "=") }.flatMap { Int($0.dropFirst(name.count + 1)) }
            return begin.adding(value ?? 0)
        }
        var body = StoredResponse.Body.complete(10)
        if let part = words.first(where: { $0.contains("/") }) {
            let range = try #require(ContentRange("bytes " + part))
            body = .part(try #require(range.bytes), of: range.length)
        }
        return StoredResponse(
            status: words.compactMap { Int($0) }.first ?? 200,
            fields: fields(text),
            requested: seconds("requested"),
            received: seconds("received"),
            body: body
        )
    }

    static func fields(_ text: String) -> HTTPFields {
        var fields = HTTPFields()
        for part in parts(text) where isField(part) {
            let colon = part.firstIndex(of: ":") ?? part.endIndex
            let value = HTTPText.trimmed(part[colon...].dropFirst())
            let offset = value.hasPrefix("@") ? Int(value.dropFirst()) : nil
            let name = String(part[..<colon])
            fields.add(names[name] ?? name, offset.map { begin.adding($0).text } ?? value)
        }
        return fields
    }

    /// Formats fields as a text, sorted by name.
    static func text(_ fields: HTTPFields) -> String {
        fields.lines.sorted { ($0.name, $0.value) < ($1.name, $1.value) }.map { line in
            let name = names.first { $0.value == line.name }?.key ?? line.name
            let offset = HTTPDate(line.value, now: begin).map { "@\($0.since(begin))" }
            return "\(name): \(offset ?? line.value)"
        }.joined(separator: " | ")
    }

    private static let names = [
        "CC": "Cache-Control", "CR": "Content-Range", "IMS": "If-Modified-Since", "INM": "If-None-Match",
        "LM": "Last-Modified",
    ]

    private static func words(_ text: String) -> [String] { parts(text).filter { !isField($0) } }

    private static func isField(_ part: String) -> Bool { part.contains(": ") || part.hasSuffix(":") }

    private static func parts(_ text: String) -> [String] {
        text.split(separator: "|").map { HTTPText.trimmed($0) }.filter { !$0.isEmpty }
    }
}
