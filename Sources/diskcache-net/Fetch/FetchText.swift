// SPDX-License-Identifier: Apache-2.0

import DiskCacheCommand
import DiskCacheHTTP
import Platform

/// How URLs and request fields are written on the command line and in messages.
enum FetchText {
    /// Checks that a URL can be fetched, and returns it.
    static func url(_ text: String) throws(Failure) -> String {
        let scheme = text.prefix { $0 != ":" }.lowercased()
        let rest = text.dropFirst(scheme.count)
        guard scheme == "http" || scheme == "https", rest.hasPrefix("://"), rest.count > 3 else {
            let shown = withoutCredentials(text)
            throw .usage("fetch: '\(shown)' can't be fetched: write a URL like https://example.org/")
        }
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw .usage("fetch: a URL contains a space or a control character: write it like %20")
        }
        return text
    }

    /// Returns a URL without user and password, which must never be output.
    ///
    /// If the URL is malformed, everything that may be meant as credentials is removed. Works on bytes, as the parser of
    /// URLs does: Swift treats an @ and a following combining mark as one character.
    static func withoutCredentials(_ url: String) -> String {
        let (bytes, at) = (url.utf8, UInt8(ascii: "@"))
        let mark = url.firstRange(of: "://")
        let begin = mark?.upperBound ?? url.startIndex
        let authority = bytes[begin...].prefix { !"/?#".utf8.contains($0) }
        let isRight = mark != nil && (authority.contains(at) || isPlace(authority))
        guard let end = isRight ? authority.lastIndex(of: at) : bytes[begin...].lastIndex(of: at) else {
            return url
        }
        return url[..<begin] + String(Substring(bytes[bytes.index(after: end)...]))
    }

    /// Returns whether the text is a host with an optional port, and not a user with the beginning of a password.
    private static func isPlace(_ authority: Substring.UTF8View) -> Bool {
        let afterAddress = authority.lastIndex(of: UInt8(ascii: "]")) ?? authority.startIndex
        guard let colon = authority[afterAddress...].lastIndex(of: UInt8(ascii: ":")) else { return true }
        return authority[authority.index(after: colon)...].allSatisfy { (0x30...0x39).contains($0) }
    }

    /// Returns a URL for messages, without credentials and without the query, which may be secret, too.
    static func place(_ url: String) -> String {
        String(withoutCredentials(url).prefix { $0 != "?" && $0 != "#" })
    }

    /// Parses a header field such as "Accept: text/html".
    static func field(_ line: String) throws(Failure) -> (name: String, value: String) {
        let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, parts[0].utf8.allSatisfy(isTokenByte) else {
            // The message does not contain the line, which may be secret.
            throw .usage("fetch: --header: a line has no name: write it like 'Accept: text/html'")
        }
        let value = parts[1].trimmingBlanks
        guard value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
            throw .usage("fetch: --header: the value of \(parts[0]) contains a control character: remove it")
        }
        return (String(parts[0]), value)
    }

    /// Returns the field in `word`, or the fields in a file named "@FILE", which keeps secrets out of the process list.
    static func fields(_ word: String) throws(Failure) -> [(name: String, value: String)] {
        guard word.hasPrefix("@") else { return [try field(word)] }
        let path = String(word.dropFirst())
        let bytes: [UInt8]?
        do throws(Errno) {
            let isStandard = path == "-"
            let file =
                isStandard
                ? try FileDescriptor.duplicate(Terminal.standardInput)
                : try FileDescriptor(opening: path, .readOnly)
            bytes = try file.readToEnd(limit: 64 * 1024)
        } catch {
            throw unreadable("fetch: --header: ", path, error)
        }
        guard let bytes, let text = String(validating: bytes, as: UTF8.self) else {
            throw .usage("fetch: --header: \(path) is longer than 64 KiB, or not UTF-8: give header lines")
        }
        var fields: [(name: String, value: String)] = []
        // Swift treats a carriage return and a newline as one character.
        for line in text.split(whereSeparator: \.isNewline) {
            let line = line.trimmingBlanks
            if !line.isEmpty, !line.hasPrefix("#") { fields.append(try field(line)) }
        }
        return fields
    }

    /// Checks that a file can be read, and returns its path.
    static func file(_ path: String) throws(Failure) -> String {
        do throws(Errno) {
            _ = try FileDescriptor(opening: path, .readOnly)
            return path
        } catch {
            throw unreadable("", path, error)
        }
    }

    private static func unreadable(_ prefix: String, _ path: String, _ error: Errno) -> Failure {
        let isForbidden = error == .accessDenied || error == .notPermitted
        let words = "\(prefix)read \(path): \(error): give a file that can be read"
        return Failure(isForbidden ? .permission : .inputOutput, words)
    }

    /// Parses "sha256:" and 64 digits, or only the digits, as `sha256sum` prints them.
    static func digest(_ text: String) throws(Failure) -> String {
        "sha256:\(try Quantity.digest(text))"
    }

    static func mode(_ text: String) throws(Failure) -> FetchMode {
        if let mode = FetchMode(rawValue: text) { return mode }
        let names = FetchMode.allCases.map(\.rawValue)
        let suggestion = Suggestion.words(for: text, among: names)
        throw .usage("unknown mode '\(text)'\(suggestion): give one of \(names.joined(separator: ", "))")
    }

    /// Returns whether a byte may be part of a token (RFC 9110, section 5.6.2).
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}

extension Substring {
    /// The text without leading and trailing spaces and tabs.
    fileprivate var trimmingBlanks: String {
        var text = drop { $0 == " " || $0 == "\t" }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return String(text)
    }
}
