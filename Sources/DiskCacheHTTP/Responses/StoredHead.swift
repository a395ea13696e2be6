// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The head of a response as stored beside its body: in the metadata of its entry, or in the note of a download.
///
/// It has a line of numbers, a line for each request field that selected it, and the fields of the response. No line
/// contains a line break.
struct StoredHead: Sendable, Equatable {
    /// Its name in the metadata of an entry.
    static let name = "http"
    private static let version = "1"

    var status: Int
    var requested: HTTPDate
    var received: HTTPDate
    var variant: Variant
    var fields: HTTPFields
    /// The epoch of its URL's choice; an invalidation of the URL begins a new one, after which this response is not used.
    var epoch: String
    /// Differs each time that a head is created, whatever its content and however short the interval.
    var issue: String
    /// The length of the whole body, if known before the body is complete.
    var length: Int?

    init(_ response: StoredResponse, epoch: String, length: Int? = nil) {
        (status, requested, received) = (response.status, response.requested, response.received)
        (variant, fields) = (response.variant, response.fields)
        (self.epoch, self.length) = (epoch, length)
        issue = randomWord()
    }

    /// Returns the response with this body.
    func response(_ body: StoredResponse.Body) -> StoredResponse {
        StoredResponse(
            status: status,
            fields: fields,
            requested: requested,
            received: received,
            variant: variant,
            body: body
        )
    }

    // MARK: Text

    /// The text, without the fields that no stored response has.
    var text: String {
        let numbers = [status, requested.seconds, received.seconds, length ?? -1].map(String.init)
        var lines = ["\(Self.version) \(numbers.joined(separator: " ")) \(epoch) \(issue)"]
        for (name, value) in variant.values.sorted(by: { $0.key < $1.key }) {
            lines.append(value.map { "?\(name): \($0)" } ?? "?\(name)")
        }
        for line in fields.lines where HTTPText.isToken(line.name) {
            if StoredFields.ofCaller.contains(HTTPText.lowercased(line.name)) { continue }
            lines.append("\(line.name): \(line.value)")
        }
        return lines.joined(separator: "\n")
    }

    /// Returns nil for invalid text, another version, and numbers that no response has.
    init?(_ text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let words = lines.first?.split(separator: " ", omittingEmptySubsequences: false) ?? []
        guard words.count == 7, words[0] == Self.version, let status = Int(words[1]),
            let requested = Int(words[2]), let received = Int(words[3]), let length = Int(words[4]),
            (100...999).contains(status), HTTPDate.range.contains(requested),
            HTTPDate.range.contains(received), length >= -1
        else { return nil }
        self.status = status
        self.requested = HTTPDate(seconds: requested)
        self.received = HTTPDate(seconds: received)
        self.length = length < 0 ? nil : length
        (epoch, issue) = (String(words[5]), String(words[6]))
        var values: [String: String?] = [:]
        fields = HTTPFields()
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            // By bytes: to Swift, a space and a combining mark after it are one character.
            let value = parts.count == 2 ? String(Substring(parts[1].utf8.dropFirst())) : nil
            if line.hasPrefix("?") {
                values.updateValue(value, forKey: String(parts[0].dropFirst()))
            } else if let value {
                fields.add(String(parts[0]), value)
            }
        }
        variant = Variant(stored: values)
    }
}

/// Returns a random word, which no other process chooses.
private func randomWord() -> String {
    var generator = SystemRandomNumberGenerator()
    return String(generator.next(), radix: 36)
}

/// The first of two steps to a stored response, stored under the URL: the fields that select it.
struct Choice: Sendable, Equatable {
    /// Differs after the URL was invalidated.
    var epoch: String
    var index = VariantIndex()

    /// Creates a choice with a new epoch, which no stored response belongs to.
    init() {
        epoch = randomWord()
    }

    var data: Data {
        let rules = index.rules.map { "\n" + $0.joined(separator: ",") }
        return Data(("1 " + epoch + rules.joined()).utf8)
    }

    /// Returns nil for invalid data.
    init?(_ data: Data) {
        let text = String(decoding: data, as: UTF8.self)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard let first = lines.first, first.hasPrefix("1 ") else { return nil }
        epoch = String(first.dropFirst(2))
        // The newest must be added last.
        for line in lines.dropFirst().reversed() {
            let names = line.split(separator: ",").map(String.init)
            var values: [String: String?] = [:]
            for name in names { values.updateValue(nil, forKey: name) }
            index.add(Variant(stored: values))
        }
    }
}

extension Variant {
    /// Creates a variant from its stored form.
    init(stored values: [String: String?]) {
        self.values = values
    }
}
