// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The request fields that select among the stored responses of one URL.
///
/// A lookup takes two steps: the choice is stored under the URL; each response is stored under the URL and a digest of
/// the fields that select it.
struct Choice: Sendable, Equatable {
    /// A random word that marks the stored responses as current; an invalidation of the URL replaces it.
    var epoch: String
    var index = VariantIndex()

    /// Creates a choice with a new epoch, to which no stored response belongs.
    init() {
        epoch = randomWord()
    }

    var data: Data {
        let rules = index.rules.map { "\n" + $0.joined(separator: ",") }
        return Data(("1 " + epoch + rules.joined()).utf8)
    }

    /// Decodes ``data``; returns nil for invalid data.
    init?(_ data: Data) {
        let text = String(decoding: data, as: UTF8.self)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard let first = lines.first, first.hasPrefix("1 ") else { return nil }
        epoch = String(first.dropFirst(2))
        // `add` puts each variant first, so the newest must be added last.
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

extension Choice {
    /// Creates the choice that an invalidation of the URL stores; it replaces an existing choice.
    ///
    /// A response that was requested before the invalidation is not stored, because its requester saw another choice or
    /// none.
    static var invalidated: Choice {
        var choice = Choice()
        choice.epoch = "~" + choice.epoch
        return choice
    }

    /// Whether an invalidation created this choice.
    var isInvalidated: Bool { epoch.hasPrefix("~") }
}
