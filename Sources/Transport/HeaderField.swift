// SPDX-License-Identifier: Apache-2.0

/// A header field line.
package struct HeaderField: Sendable, Equatable {
    package var name: String
    package var value: String
    private let declared: Bool?

    /// Creates a field line.
    ///
    /// - Parameter isSecret: whether it is secret; if nil, it is unless ``HarmlessFields`` contains the name.
    package init(_ name: String, _ value: String, isSecret: Bool? = nil) {
        self.name = name
        self.value = value
        declared = isSecret
    }

    /// Whether the field is sent only to the requested server, and to no other after a redirect.
    package var isSecret: Bool {
        if let declared { return declared }
        return !HarmlessFields.contains(name.lowercased())
    }

    /// Returns whether it has this name, which is in lower case.
    package func isNamed(_ lowercased: String) -> Bool {
        let (name, other) = (name.utf8.span, lowercased.utf8.span)
        guard name.count == other.count else { return false }
        for index in name.indices where name[index] != other[index] {
            guard (0x41...0x5A).contains(name[index]), name[index] | 0x20 == other[index] else {
                return false
            }
        }
        return true
    }
}
