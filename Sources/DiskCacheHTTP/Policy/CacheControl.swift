// SPDX-License-Identifier: Apache-2.0

/// The directives of Cache-Control (RFC 9111, section 5.2), in a request or a response.
///
/// Unknown directives are kept and ignored. If a directive is repeated, the first one counts (section 4.2.1). An argument
/// may be a token or a quoted string, whatever the directive's definition says.
package struct CacheControl: Sendable, Equatable {
    /// The argument of a directive that should be a number of seconds.
    package enum Seconds: Sendable, Equatable {
        case seconds(Int)
        /// The argument is missing, negative, fractional or not a number, or white space surrounds the equals sign.
        case invalid
    }

    private struct Directive: Sendable, Equatable {
        var name: String
        var argument: String?
        var isWellFormed: Bool
    }

    private let directives: [Directive]

    /// Parses all Cache-Control lines.
    package init(_ fields: HTTPFields) {
        directives = fields.members(of: "Cache-Control").map(Self.directive)
    }

    private static func directive(_ member: String) -> Directive {
        let parts = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            .map(String.init)
        let name = HTTPText.lowercased(HTTPText.trimmed(parts[0]))
        guard parts.count == 2 else { return Directive(name: name, argument: nil, isWellFormed: true) }
        let argument = HTTPText.trimmed(parts[1])
        return Directive(
            name: name,
            argument: HTTPText.unquoted(argument) ?? argument,
            isWellFormed: argument == parts[1] && HTTPText.trimmed(parts[0]) == parts[0]
        )
    }

    /// Returns whether there is a directive of this name, in lower case, with or without an argument.
    package func contains(_ name: String) -> Bool { directives.contains { $0.name == name } }

    /// Whether there are no directives.
    package var isEmpty: Bool { directives.isEmpty }

    /// Returns the seconds of the first directive of this name, or nil if it is missing.
    package func seconds(_ name: String) -> Seconds? {
        guard let directive = directives.first(where: { $0.name == name }) else { return nil }
        guard directive.isWellFormed, let seconds = directive.argument.flatMap(HTTPText.seconds) else {
            return .invalid
        }
        return .seconds(seconds)
    }

    /// Returns the seconds of the first directive of this name, or nil if it is missing or its number is invalid.
    package func validSeconds(_ name: String) -> Int? {
        guard case .seconds(let seconds) = seconds(name) else { return nil }
        return seconds
    }

    /// Whether the whole response must be validated before each use.
    package var forbidsUnvalidatedUse: Bool {
        directives.contains { $0.name == "no-cache" && Self.fieldNames($0) == nil }
    }

    /// The fields, in lower case, that must not be returned without validation, as in `no-cache="Set-Cookie"`.
    package var fieldsToValidate: Set<String> {
        Set(directives.filter { $0.name == "no-cache" }.flatMap { Self.fieldNames($0) ?? [] })
    }

    /// Returns the field names in the argument of no-cache.
    ///
    /// Returns nil if the argument is missing or not a list of names; the directive then applies to the whole response.
    private static func fieldNames(_ directive: Directive) -> [String]? {
        guard let argument = directive.argument else { return nil }
        let names = HTTPText.members(argument).map(HTTPText.lowercased)
        return names.isEmpty || !names.allSatisfy(HTTPText.isToken) ? nil : names
    }

    /// Whether the directives accept any staleness: max-stale without an argument.
    package var allowsAnyStaleness: Bool {
        directives.first { $0.name == "max-stale" }.map { $0.argument == nil } ?? false
    }
}
