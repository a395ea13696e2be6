// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Transport

/// The encoding of a stored response, without its body, as text.
///
/// The text is stored in the metadata of the response's entry, or in the note of a partial download. Its first line
/// contains numbers; then come a line for each request field that selected the response, and the response's fields. No
/// value contains a line break.
extension StoredResponse {
    /// The name of the text in the metadata of an entry.
    static let metadataName = "http"
    private static let version = "1"

    /// Returns a copy of this response for the given epoch of its URL, with a new ``issue``.
    func issued(in epoch: String) -> StoredResponse {
        var issued = self
        (issued.epoch, issued.issue) = (epoch, randomWord())
        return issued
    }

    /// The encoded response.
    var text: String {
        // An entry's size is the length of a complete body.
        let length = if case .part(_, let length?) = body { length } else { -1 }
        let numbers = [status, requested.seconds, received.seconds, length].map(String.init)
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

    /// Decodes ``text``; returns nil for invalid text, for another version, and for numbers out of range.
    ///
    /// - Parameter body: returns the stored part of the body, given the length of the whole body, or nil if the text does
    ///   not contain it.
    init?(_ text: String, body: (Int?) -> Body) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let words = lines.first?.split(separator: " ", omittingEmptySubsequences: false) ?? []
        guard words.count == 7, words[0] == Self.version, let status = Int(words[1]),
            let requested = Int(words[2]), let received = Int(words[3]), let length = Int(words[4]),
            (100...999).contains(status), HTTPDate.range.contains(requested),
            HTTPDate.range.contains(received), length >= -1
        else { return nil }
        var values: [String: String?] = [:]
        var fields = HTTPFields()
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            // Splits bytes: Swift treats a space and a combining mark after it as one character.
            let value = parts.count == 2 ? String(Substring(parts[1].utf8.dropFirst())) : nil
            if line.hasPrefix("?") {
                values.updateValue(value, forKey: String(parts[0].dropFirst()))
            } else if let value {
                fields.add(String(parts[0]), value)
            }
        }
        self.init(
            status: status,
            fields: fields,
            requested: HTTPDate(seconds: requested),
            received: HTTPDate(seconds: received),
            variant: Variant(stored: values),
            body: body(length < 0 ? nil : length)
        )
        (epoch, issue) = (String(words[5]), String(words[6]))
    }
}

/// Returns a random word of 64 bits.
func randomWord() -> String {
    var generator = SystemRandomNumberGenerator()
    return String(generator.next(), radix: 36)
}
