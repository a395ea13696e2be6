// SPDX-License-Identifier: Apache-2.0

import Platform

/// An option as the user sees it.
struct Option {
    let specification: OptionSpecification
    /// The placeholder of the value in the help; nil if the option takes no value.
    let placeholder: String?
    /// Whether the value is a path: bytes, which need not be UTF-8.
    var isPath: Bool { placeholder == "DIR" || placeholder == "FILE" }
    /// The allowed values; empty if any value is allowed.
    let choices: [String]
    let isRepeatable: Bool
    let help: String

    /// Parses a line of a help text: "-t, --ttl SPAN  how long until it expires".
    ///
    /// "[=SPAN]" is an optional value, "TAG…" one that can be given several times, and "ORDER{key, size}" one of the listed
    /// choices.
    init(_ line: Substring) {
        let parts = line.split(separator: "  ", maxSplits: 1)
        var words = parts[0].split { " ,[]{}".contains($0) }[...]
        let letter = words[0].hasPrefix("--") ? nil : words.removeFirst().last
        let name = String(words.removeFirst().dropFirst(2))
        let value = words.first ?? ""
        let argument: OptionSpecification.Argument =
            value.isEmpty ? .none : value.hasPrefix("=") ? .optional : .required
        specification = OptionSpecification(name: name, letter: letter, argument: argument)
        placeholder = value.isEmpty ? nil : String(value.drop { $0 == "=" }.prefix { $0 != "…" })
        choices = words.dropFirst().map(String.init)
        isRepeatable = value.hasSuffix("…")
        help = parts.dropFirst().joined() + (isRepeatable ? "; can be repeated" : "")
    }

    /// The options of every command.
    static let common = [
        Option("-d, --dir DIR  the cache directory (see `diskcache --help`)"),
        Option("-h, --help  show help"),
    ]
    /// Lines for the commands that have these options.
    static let json = "--json  print JSON instead of text"
    static let scope = "--scope TEXT  prefix KEY with TEXT (default $DISKCACHE_SCOPE)"

    /// Returns the text after the name, such as "[=SPAN]", " SPAN" or nothing, with the placeholder in a style.
    func value(_ style: (String) -> String) -> String {
        guard let placeholder else { return "" }
        return specification.argument == .optional ? "[=\(style(placeholder))]" : " " + style(placeholder)
    }

    /// The option's line in a help text.
    var line: String {
        let letter = specification.letter.map { "-\($0), " } ?? "    "
        let head = "  \(letter)--\(specification.name)" + value { $0 }
        // Two columns, the second at 30; a longer head gets its own line.
        let gap =
            head.count < 29
            ? String(repeating: " ", count: 30 - head.count) : "\n" + String(repeating: " ", count: 30)
        return head + gap + help + "\n"
    }
}
