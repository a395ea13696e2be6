// SPDX-License-Identifier: Apache-2.0

package import DiskCache

/// The options that select the keys that a command applies to.
package enum SelectionOptions {
    static let list = """
        --prefix TEXT  only keys that begin with TEXT
        --glob PATTERN  only keys that match PATTERN, such as 'a*' or '*.png'
        --tag TAG  only values with this tag
        """
    static let exclusive = [["prefix", "glob", "tag"]]

    /// The section about these options in help texts.
    static let help = """
        --prefix and --glob match the full key, including the scope. In PATTERN, * matches any text, ? any one
        character, [a-z] any of these characters, [!a-z] any other character, and \\ makes the next character
        literal. A slash is an ordinary character.
        """

    /// Returns the selection by the options in ``list``; all keys if none was given.
    static func selection(_ arguments: Arguments) throws(Failure) -> KeySelection {
        for option in ["prefix", "glob", "tag"] { try checkOnce(option, arguments) }
        return try selections(arguments).last ?? .all
    }

    /// Throws if an option was given with several values although only one can be used; none is silently ignored.
    private static func checkOnce(_ option: String, _ arguments: Arguments) throws(Failure) {
        guard Set(arguments.all(option)).count > 1 else { return }
        throw .usage("\(arguments.command): --\(option) was given several times: give it once")
    }

    /// Returns the selections of all options, each of which may have been given several times.
    package static func selections(_ arguments: Arguments) throws(Failure) -> [KeySelection] {
        var selections: [KeySelection] = []
        for prefix in try arguments.texts("prefix", "prefix") { selections.append(.prefix(prefix)) }
        for pattern in try arguments.texts("glob", "pattern") { selections.append(.glob(pattern)) }
        for tag in try arguments.tags() { selections.append(.tagged(tag)) }
        return selections
    }

    /// Returns the prefix; nil if none was given.
    static func prefix(_ arguments: Arguments) throws(Failure) -> String? {
        try checkOnce("prefix", arguments)
        return try arguments.texts("prefix", "prefix").last
    }
}
