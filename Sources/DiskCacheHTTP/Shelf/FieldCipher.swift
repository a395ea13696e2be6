// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// Encrypts text in a file of the cache that only its user may read.
///
/// Both steps use HMAC with SHA-256 (RFC 2104): over a random number and a counter it yields the key stream that is combined
/// with the text, and over the result it yields the tag that detects changes (encrypt-then-MAC, Bellare and Namprempre
/// 2000).
struct FieldCipher: Sendable, Equatable {
    /// The length of a key in bytes.
    static let keyLength = 32
    /// The length in bytes of the random number, and of the tag.
    private static let overhead = 16

    private let encryption: [UInt8]
    private let authentication: [UInt8]

    init(key: [UInt8]) {
        encryption = HMAC.sha256(key: key, Array("encryption".utf8))
        authentication = HMAC.sha256(key: key, Array("authentication".utf8))
    }

    /// Encrypts `text`, in Base64; decryption needs the key and the same `place`.
    func sealed(_ text: String, for place: String) -> String {
        var generator = SystemRandomNumberGenerator()
        let nonce = (0..<Self.overhead).map { _ in UInt8.random(in: 0 ... .max, using: &generator) }
        let hidden = combined(Array(text.utf8), nonce)
        return Data(nonce + hidden + tag(nonce + hidden, place)).base64EncodedString()
    }

    /// Decrypts text that was sealed for this place; returns nil for any other text, or with another key.
    func opened(_ text: String, for place: String) -> String? {
        guard let bytes = Data(base64Encoded: text).map(Array.init), bytes.count >= 2 * Self.overhead else {
            return nil
        }
        let end = bytes.count - Self.overhead
        guard tag(Array(bytes[..<end]), place) == Array(bytes[end...]) else { return nil }
        let open = combined(Array(bytes[Self.overhead..<end]), Array(bytes[..<Self.overhead]))
        return String(validating: open, as: UTF8.self)
    }

    /// Encrypts or decrypts: combines each byte with one of the key stream.
    private func combined(_ bytes: [UInt8], _ nonce: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var block: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            if index % 32 == 0 {
                let counter = (0..<8).map { UInt8(truncatingIfNeeded: (index / 32) >> ($0 * 8)) }
                block = HMAC.sha256(key: encryption, nonce + counter)
            }
            result.append(byte ^ block[index % 32])
        }
        return result
    }

    private func tag(_ bytes: [UInt8], _ place: String) -> [UInt8] {
        // A fixed length, so that the place can't be confused with the text.
        let meant = HMAC.sha256(key: authentication, Array(place.utf8))
        return Array(HMAC.sha256(key: authentication, meant + bytes)[..<Self.overhead])
    }
}

extension FieldCipher {
    /// Creates a cipher with the key in the file at `path`; if the file is missing, creates it for this user only.
    ///
    /// Blocks. Returns nil if the file is missing and can't be created, has another length, belongs to another user, or
    /// gives others any permission.
    init?(keyFile path: String) {
        do {
            guard let key = try Self.key(at: path) else { return nil }
            self.init(key: key)
        } catch {
            // The fields that it would have encrypted are not stored.
            return nil
        }
    }

    private static func key(at path: String) throws -> [UInt8]? {
        guard let slash = path.lastIndex(of: "/") else { return nil }
        let (parent, name) = (String(path[...slash]), path[path.index(after: slash)...])
        let isName = (1...RelativePath.capacity).contains(name.utf8.count) && !name.utf8.contains(0)
        guard isName else { return nil }
        let file = RelativePath(String(name))
        do throws(Errno) {
            return try read(Directory(opening: parent), file)
        } catch {
            if error != .noEntry { throw error }
        }
        let manager = FileManager.default
        let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o700]
        try manager.createDirectory(atPath: parent, withIntermediateDirectories: true, attributes: attributes)
        let directory = try Directory(opening: parent)
        guard let new = try directory.openUnnamed(mode: 0o600) else { return nil }
        var generator = SystemRandomNumberGenerator()
        let key = (0..<keyLength).map { _ in UInt8.random(in: 0 ... .max, using: &generator) }
        try new.writeAll(key.span)
        do throws(Errno) {
            try directory.link(new, as: file)
        } catch {
            // Another process may have been first; its key is used.
            if error != .exists { throw error }
        }
        return try read(directory, file)
    }

    private static func read(
        _ directory: borrowing Directory,
        _ name: RelativePath
    ) throws(Errno) -> [UInt8]? {
        let file = try directory.open(name, .readOnly)
        let status = try file.status()
        let isOwn = status.owner == CurrentProcess.effectiveUser && status.permissions & 0o077 == 0
        let key = isOwn ? try file.readToEnd(limit: keyLength) : nil
        return key?.count == keyLength ? key : nil
    }
}
