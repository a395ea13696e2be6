// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

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

extension Choice {
    /// The choice that an invalidation stores, replacing an earlier one if there is any.
    ///
    /// A response that was requested before is not stored: its requester has seen another choice, or none.
    static var invalidated: Choice {
        var choice = Choice()
        choice.epoch = "~" + choice.epoch
        return choice
    }

    /// Whether an invalidation created it.
    var isInvalidated: Bool { epoch.hasPrefix("~") }
}
