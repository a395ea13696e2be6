// SPDX-License-Identifier: Apache-2.0

/// The directives of Cache-Control (RFC 9111, section 5.2), of a request or a response.
///
/// What is not known is kept and means nothing. Of a directive that comes several times the first one counts
/// (section 4.2.1). An argument may be a token or a quoted string, whichever the directive's definition says.
package struct CacheControl: Sendable, Equatable {
    /// A number of seconds, or that there should be one and is not.
    package enum Seconds: Sendable, Equatable {
        case seconds(Int)
        /// No number, a negative one, a fraction, or white space around the equals sign.
        case invalid
    }

    private struct Directive: Sendable, Equatable {
        var name: String
        var argument: String?
        var isWellFormed: Bool
    }

    private let directives: [Directive]

    /// From all lines of the field.
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

    /// Whether there is a directive of this name, in lower case, with an argument or without.
    package func contains(_ name: String) -> Bool { directives.contains { $0.name == name } }

    /// Whether there is none at all.
    package var isEmpty: Bool { directives.isEmpty }

    /// The seconds of the first directive of this name; nil if there is none.
    package func seconds(_ name: String) -> Seconds? {
        guard let directive = directives.first(where: { $0.name == name }) else { return nil }
        guard directive.isWellFormed, let seconds = directive.argument.flatMap(HTTPText.seconds) else {
            return .invalid
        }
        return .seconds(seconds)
    }

    /// The same, with nothing in the place of what is no number.
    package func validSeconds(_ name: String) -> Int? {
        guard case .seconds(let seconds) = seconds(name) else { return nil }
        return seconds
    }

    /// Whether a response must be validated as a whole before each use.
    package var forbidsUnvalidatedUse: Bool {
        directives.contains { $0.name == "no-cache" && Self.fieldNames($0) == nil }
    }

    /// The fields, in lower case, that must not be sent without validation: `no-cache="Set-Cookie"`.
    package var fieldsToValidate: Set<String> {
        Set(directives.filter { $0.name == "no-cache" }.flatMap { Self.fieldNames($0) ?? [] })
    }

    /// Nil without an argument, and with one that is no list of names: then all of the response is meant, to
    /// be safe.
    private static func fieldNames(_ directive: Directive) -> [String]? {
        guard let argument = directive.argument else { return nil }
        let names = HTTPText.members(argument).map(HTTPText.lowercased)
        return names.isEmpty || !names.allSatisfy(HTTPText.isToken) ? nil : names
    }

    /// Whether it allows max-stale of any length: the directive without an argument.
    package var allowsAnyStaleness: Bool {
        directives.first { $0.name == "max-stale" }.map { $0.argument == nil } ?? false
    }
}
