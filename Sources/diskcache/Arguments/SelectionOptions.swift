// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// The options that say which keys a command is about.
enum SelectionOptions {
    static let prefix = "--prefix TEXT  only keys that begin with TEXT"
    static let list = """
        \(prefix)
        --glob PATTERN  only keys that match PATTERN: * is any text, ? any character
        --tag TAG  only values with this tag
        """
    static let exclusive = [["prefix", "glob", "tag"]]

    /// What is said about keys of which only the digest is kept, for the help texts of the commands.
    static let help = """
        Keys are meant as a whole here: a scope is a part of them. Of keys that were not kept (longer than 1 KiB, or
        on request) nobody knows how they begin: they count to every prefix, and match no pattern.
        """

    /// What ``list`` asks for; everything if none was given.
    static func selection(_ arguments: Arguments) throws(Failure) -> KeySelection {
        try selections(arguments).last ?? .all
    }

    /// All that the options ask for, each of which may have been given several times.
    static func selections(_ arguments: Arguments) throws(Failure) -> [KeySelection] {
        var selections: [KeySelection] = []
        for prefix in try arguments.texts("prefix", "text") { selections.append(.prefix(prefix)) }
        for pattern in try arguments.texts("glob", "pattern") { selections.append(.glob(pattern)) }
        for tag in try arguments.tags() { selections.append(.tagged(tag)) }
        return selections
    }

    /// The prefix; nil if there is none.
    static func prefix(_ arguments: Arguments) throws(Failure) -> String? {
        _ = try arguments.texts("prefix", "text")
        return arguments.value("prefix")
    }
}
