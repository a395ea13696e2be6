// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Platform

/// The credentials for each server, as lines `host = user:password` from a file or the environment.
///
/// ```
/// # a comment
/// cache-1:8080 = builder:secret
/// redis.example = :secret
/// s3.example = ACCESSKEY:secretkey:sessiontoken
/// ```
///
/// Secrets never appear in output or in errors.
struct RemoteCredentials: Sendable {
    /// The credentials for one host.
    struct Entry: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible {
        /// The user, or the access key; may be empty.
        let user: String
        /// The password, which may contain colons.
        let secret: String

        /// The user, without the secret.
        var description: String { "credentials of \(user)" }
        var debugDescription: String { description }

        /// For S3 the secret key: the part before the first colon.
        var secretKey: Substring { secret.prefix { $0 != ":" } }

        /// For S3 the token of a session, which may contain colons; nil if there is none.
        var sessionToken: Substring? {
            secretKey.endIndex == secret.endIndex ? nil : secret[secretKey.endIndex...].dropFirst()
        }
    }

    private var entries: [String: Entry] = [:]

    init(text: String) {
        for line in text.split(whereSeparator: \.isNewline) {
            let halves = line.split(separator: "=", maxSplits: 1).map(Self.trimmed)
            guard halves.count == 2, !line.drop(while: \.isWhitespace).hasPrefix("#") else { continue }
            guard let colon = halves[1].firstIndex(of: ":") else { continue }
            let secret = halves[1][colon...].dropFirst()
            entries[halves[0].lowercased()] = Entry(user: String(halves[1][..<colon]), secret: String(secret))
        }
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text.drop(while: \.isWhitespace)
        while text.last?.isWhitespace ?? false { text.removeLast() }
        return String(text)
    }

    /// Reads the file at `path` or, if it is nil, the environment.
    ///
    /// - Throws: ``CacheError/Code/untrusted`` if other users may read or write the file, or if it belongs to a user
    ///   other than this one and root.
    init(from path: String?) throws(CacheError) {
        guard let path else {
            let bytes = CurrentProcess.environmentBytes("DISKCACHE_REMOTE_CREDENTIALS") ?? []
            self.init(text: String(decoding: bytes, as: UTF8.self))
            return
        }
        let (status, bytes): (FileStatus, [UInt8]?)
        do throws(Errno) {
            let file = try FileDescriptor(opening: path, .readOnly)
            status = try file.status()
            bytes = status.kind == .regular ? try file.readToEnd(limit: 64 * 1024) : nil
        } catch {
            throw CacheError(
                CacheError(errno: error, "read credentials in", path: path).code,
                "read credentials in \(path): \(error): make the file readable for this user, or change remote.credentials",
                cause: error,
                path: path
            )
        }
        let owners = [CurrentProcess.effectiveUser, 0]
        guard status.permissions & 0o077 == 0, owners.contains(status.owner) else {
            throw CacheError(
                .untrusted,
                "read credentials in \(path): others may read or write it: chmod 600, and make it your own",
                path: path
            )
        }
        guard let bytes else {
            let words = "read credentials in \(path): it is not a file of credentials: name another"
            throw CacheError(.badConfiguration, words, path: path)
        }
        self.init(text: String(decoding: bytes, as: UTF8.self))
    }

    /// Returns the credentials for a server, by its host and port, or else by its host; for a Unix socket, by its path.
    func entry(for address: RemoteAddress) -> Entry? {
        if let path = address.socketPath { return entries[path.lowercased()] }
        let exact = entries["\(address.host):\(address.port)"]
        return exact ?? entries[address.authority] ?? entries[address.host]
    }
}
