// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The head of a response as it is kept beside the body: in the metadata of its entry, or in the note of a
/// download.
///
/// A line of numbers, then one for each field that has chosen it, then the fields of the response, at last a line with
/// those that are encrypted. No line of a head has an end of line in it.
struct StoredHead: Sendable, Equatable {
    /// Its name in the metadata of an entry.
    static let name = "http"
    private static let version = "1"

    var status: Int
    var requested: HTTPDate
    var received: HTTPDate
    var variant: Variant
    var fields: HTTPFields
    /// Which life of its URL's choice it belongs to: what was stored before the URL was invalidated is of no
    /// use.
    var epoch: String
    /// Differs each time that one is stored, whatever it says and however little time is between.
    var issue: String
    /// The length of the whole body, where that is known before it is there.
    var length: Int?
    /// The fields that are encrypted (``KeptFields/encrypted``), until they are opened.
    private(set) var sealed: String?

    init(_ response: StoredResponse, epoch: String, length: Int? = nil) {
        (status, requested, received) = (response.status, response.requested, response.received)
        (variant, fields) = (response.variant, response.fields)
        (self.epoch, self.length) = (epoch, length)
        issue = randomWord()
    }

    /// What it is with this body.
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

    /// Without the fields that are encrypted.
    var text: String { text(sealed: nil) }

    /// With them, as far as there is something to encrypt them with.
    ///
    /// - Parameter key: that of the entry, without which they can't be opened.
    func text(forKey key: String, cipher: () -> FieldCipher?) -> String {
        let secret = fields.lines.filter(Self.isEncrypted).map { "\($0.name): \($0.value)" }
        return text(sealed: secret.isEmpty ? nil : cipher()?.sealed(secret.joined(separator: "\n"), for: key))
    }

    private func text(sealed: String?) -> String {
        let numbers = [status, requested.seconds, received.seconds, length ?? -1].map(String.init)
        var lines = ["\(Self.version) \(numbers.joined(separator: " ")) \(epoch) \(issue)"]
        for (name, value) in variant.values.sorted(by: { $0.key < $1.key }) {
            lines.append(value.map { "?\(name): \($0)" } ?? "?\(name)")
        }
        for line in fields.lines where HTTPText.isToken(line.name) && !Self.isEncrypted(line) {
            lines.append("\(line.name): \(line.value)")
        }
        // No name of a field begins like this.
        if let sealed { lines.append(":\(sealed)") }
        return lines.joined(separator: "\n")
    }

    private static func isEncrypted(_ line: HTTPFields.Line) -> Bool {
        KeptFields.encrypted.contains(HTTPText.lowercased(line.name))
    }

    /// With the fields that were encrypted among the others, if `cipher` can open them.
    mutating func open(forKey key: String, with cipher: FieldCipher?) {
        let text = sealed.flatMap { cipher?.opened($0, for: key) } ?? ""
        sealed = nil
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 1)
            if parts.count == 2 { fields.add(String(parts[0]), String(parts[1])) }
        }
    }

    /// Nil for what is none, or that of another version; also for numbers that no response has.
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
            // By bytes: to Swift a blank and a mark behind it are one character.
            let value = parts.count == 2 ? String(Substring(parts[1].utf8.dropFirst())) : nil
            if line.hasPrefix(":") {
                sealed = String(line.dropFirst())
            } else if line.hasPrefix("?") {
                values.updateValue(value, forKey: String(parts[0].dropFirst()))
            } else if let value {
                fields.add(String(parts[0]), value)
            }
        }
        variant = Variant(stored: values)
    }
}

/// One that nobody else chooses.
private func randomWord() -> String {
    var generator = SystemRandomNumberGenerator()
    return String(generator.next(), radix: 36)
}

/// The first of two steps to a stored response, as it is kept under the URL: which fields choose.
struct Choice: Sendable, Equatable {
    /// Differs after the URL was invalidated.
    var epoch: String
    var index = VariantIndex()

    /// A new one, which nothing that was stored before belongs to.
    init() {
        epoch = randomWord()
    }

    var data: Data {
        let rules = index.rules.map { "\n" + $0.joined(separator: ",") }
        return Data(("1 " + epoch + rules.joined()).utf8)
    }

    /// Nil for what is none.
    init?(_ data: Data) {
        let text = String(decoding: data, as: UTF8.self)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard let first = lines.first, first.hasPrefix("1 ") else { return nil }
        epoch = String(first.dropFirst(2))
        // The newest is added last.
        for line in lines.dropFirst().reversed() {
            let names = line.split(separator: ",").map(String.init)
            var values: [String: String?] = [:]
            for name in names { values.updateValue(nil, forKey: name) }
            index.add(Variant(stored: values))
        }
    }
}

extension Variant {
    /// As it was written down.
    init(stored values: [String: String?]) {
        self.values = values
    }
}
