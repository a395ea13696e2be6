// SPDX-License-Identifier: Apache-2.0

import Platform

/// An option as help texts show it.
struct Option {
    let specification: OptionSpecification
    /// The placeholder of the value in help texts; nil if the option takes no value.
    let placeholder: String?
    /// Whether the value is a path, which is a sequence of bytes that need not be UTF-8.
    var isPath: Bool { placeholder == "DIR" || placeholder == "FILE" }
    /// The allowed values; empty if any value is allowed.
    let choices: [String]
    let isRepeatable: Bool
    let help: String

    /// Parses a line of a help text, such as "-t, --ttl SPAN  how long until it expires".
    ///
    /// "[=SPAN]" means an optional value, "TAG…" a value that can be given several times, and "ORDER{key, size}" a choice
    /// of the listed values.
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
    /// The line for commands that can print JSON.
    static let json = "--json  print JSON instead of text"
    static let scope = "--scope TEXT  prefix KEY with TEXT (default $DISKCACHE_SCOPE)"

    /// Returns the part after the name, such as "[=SPAN]", " SPAN" or nothing, with a styled placeholder.
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
