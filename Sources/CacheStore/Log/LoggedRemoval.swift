// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The removal of a key, as recorded in the cache's event log, or as reported by a collection.
public struct LoggedRemoval: Sendable, Equatable {
    /// Why a key was removed.
    @nonexhaustive
    public enum Cause: Sendable, Hashable {
        /// By a collection, for this reason.
        case collected(RemovalReason)
        /// By a call that removed this key.
        case removed
        /// By a call that removed many keys at once (`removeAll`).
        case cleared
        /// By a reader that found the value or its metadata damaged, or by `verify`.
        case repaired

        /// The word in the event log.
        package var word: String {
            switch self {
            case .collected(let reason): reason.rawValue
            case .removed: "removed"
            case .cleared: "cleared"
            case .repaired: "repaired"
            }
        }

        private static let all = RemovalReason.allCases.map(Self.collected) + [.removed, .cleared, .repaired]

        init?(word: String) {
            guard let cause = Self.all.first(where: { $0.word == word }) else { return nil }
            self = cause
        }
    }

    /// The process that removed it.
    public let process: Int32
    /// Why it was removed.
    public let cause: Cause
    /// The name of the entry's file: SHA-256 of the key, or of other bytes for a download.
    public let keyDigest: Digest
    /// The key; nil if it is unknown.
    ///
    /// It is known if the caller requested the removals of this key, if the log contains the key, or if a collection
    /// reports it during the removal. The log and a collection omit keys that are not stored or are longer than 1 KiB;
    /// the log also omits the keys that a collection removed.
    public package(set) var key: String?
    /// When it was removed.
    package let moment: Timestamp

    package init(time: Timestamp, process: Int32, cause: Cause, key: LoggedKey) {
        moment = time
        self.process = process
        self.cause = cause
        keyDigest = key.digest
        self.key = key.name
    }

    /// Appends the line, with its newline; the key's control characters and backslashes are written like `\x0a`.
    func append(to bytes: inout [UInt8]) {
        bytes += "\(moment.nanoseconds) \(process) \(cause.word) \(keyDigest)".utf8
        if let key {
            bytes.append(UInt8(ascii: " "))
            for byte in key.utf8 {
                guard byte < 0x20 || byte == 0x7f || byte == UInt8(ascii: "\\") else {
                    bytes.append(byte)
                    continue
                }
                bytes += (byte < 16 ? "\\x0" : "\\x").utf8
                bytes += String(byte, radix: 16).utf8
            }
        }
        bytes.append(UInt8(ascii: "\n"))
    }

    /// Parses a line without its newline; nil if it is invalid or incomplete.
    init?(_ line: [UInt8]) {
        let words = line.split(separator: UInt8(ascii: " "), maxSplits: 4, omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        guard words.count >= 4, let time = Int64(words[0]), let process = Int32(words[1]),
            let cause = Cause(word: words[2]), let digest = Digest(hexadecimal: words[3])
        else { return nil }
        let name = words.count > 4 ? Self.unescaped(words[4]) : nil
        // A key that does not match the digest is incomplete, so the line is invalid.
        if words.count > 4 {
            guard let name, KeySpace.allCases.contains(where: { Digest(ofKey: name, in: $0) == digest })
            else {
                return nil
            }
        }
        self.init(
            time: Timestamp(nanoseconds: time),
            process: process,
            cause: cause,
            key: LoggedKey(digest: digest, name: name)
        )
    }

    private static func unescaped(_ text: String) -> String? {
        var bytes: [UInt8] = []
        var rest = Substring(text).utf8
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            guard rest.popFirst() == UInt8(ascii: "x"),
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            else { return nil }
            rest = rest.dropFirst(2)
            bytes.append(value)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// A key as stored in the event log.
package struct LoggedKey: Sendable, Equatable {
    package let digest: Digest
    /// The key; nil if it is unknown, because a sweep reads no record only to log its key.
    package let name: String?

    package init(digest: Digest, name: String?) {
        self.digest = digest
        // The limit is the same as in a record; it also keeps a line from exceeding a batch.
        self.name = name.flatMap { $0.utf8.count <= Record.longestKey ? $0 : nil }
    }
}
