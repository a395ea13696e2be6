// SPDX-License-Identifier: Apache-2.0

/// A header field line.
package struct HeaderField: Sendable, Equatable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// Returns whether the field has this name, which must be given in lower case.
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
