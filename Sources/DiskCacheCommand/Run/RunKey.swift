// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import Platform

/// The inputs that distinguish a command's result from the results of all other commands.
struct RunKey: Equatable {
    /// The command and its arguments, as bytes.
    var words: [[UInt8]]
    /// Values of environment variables by name; nil for a variable that is not set.
    ///
    /// Names and paths are bytes here, because a `String` equals others with the same characters and other bytes.
    var environment: [[UInt8]: [UInt8]?] = [:]
    var workingDirectory: [UInt8]?
    /// Modification times by path; nil for a file that doesn't exist.
    var modified: [[UInt8]: Timestamp?] = [:]
    /// Digests of contents by path; nil for a file that doesn't exist.
    var contents: [[UInt8]: Digest?] = [:]

    /// The key: `run:`, 128 bits of a digest of all inputs, and the readable command for users who list keys.
    var text: String {
        let digest = Digest(of: Data(encoded)).description.prefix(32)
        return "run:\(digest) \(Self.readable(words))"
    }

    /// The encoded inputs; each part is preceded by its kind and its length, so that different inputs give different
    /// bytes.
    var encoded: [UInt8] {
        var bytes: [UInt8] = []
        func add(_ kind: Character, _ part: some Collection<UInt8>) {
            bytes += Array("\(kind)\(part.count):".utf8) + part
        }
        for word in words { add("w", word) }
        for (name, value) in Self.sorted(environment) {
            add("e", name)
            if let value { add("v", value) }
        }
        if let workingDirectory { add("d", workingDirectory) }
        for (path, moment) in Self.sorted(modified) {
            add("f", path)
            if let moment { add("t", Array(String(moment.nanoseconds).utf8)) }
        }
        for (path, digest) in Self.sorted(contents) {
            add("h", path)
            if let digest { add("c", Array(digest.description.utf8)) }
        }
        return bytes
    }

    private static func sorted<Value>(_ inputs: [[UInt8]: Value]) -> [(key: [UInt8], value: Value)] {
        inputs.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    }

    /// The maximum length in bytes of the readable part, long enough to recognize a command.
    ///
    /// The whole key stays far below 1 KiB, the maximum length of a key.
    private static let longestText = 200

    /// Returns the command as a user would type it into a shell, truncated if it is long.
    ///
    /// Keys are text, so invalid UTF-8 is replaced; the digest in the key still distinguishes such commands.
    static func readable(_ words: [[UInt8]]) -> String {
        let text = words.map { quoted(String(decoding: $0, as: UTF8.self)) }.joined(separator: " ")
        if text.utf8.count <= longestText { return text }
        var left = longestText
        let short = text.prefix { character in
            left -= character.utf8.count
            return left >= 0
        }
        return short + "…"
    }

    private static func quoted(_ word: String) -> String {
        let isPlain = word.unicodeScalars.allSatisfy {
            !$0.isASCII || $0.properties.isAlphabetic || "0123456789_@%+=:,./-".unicodeScalars.contains($0)
        }
        if isPlain, !word.isEmpty { return word }
        return "'\(word.replacing("'", with: "'\\''"))'"
    }
}

extension RunKey {
    /// Creates the key for the options, and reads the named inputs.
    ///
    /// - Throws: A usage error for a mistake on the command line, with the command's name as a prefix. Any other error
    ///   means that an input can't be read; ``Notice`` reports it.
    init(_ arguments: Arguments) throws(Failure) {
        self.init(words: arguments.commandLine)
        for name in arguments.all("env") {
            // "A,B" or "A B" would name a single variable, which is never set, so the values of A and B would have no
            // effect.
            if name.isEmpty || name.contains(where: { "=, ".contains($0) }) {
                let advice = "give one name alone, and repeat --env for others"
                throw .usage("run: --env: \"\(name)\" is not the name of a variable: \(advice)")
            }
            let value = CurrentProcess.environmentBytes(name)
            environment.updateValue(value, forKey: Array(name.utf8))
        }
        if arguments.has("cwd") {
            do throws(Errno) {
                workingDirectory = try CurrentProcess.workingDirectory()
            } catch {
                throw Failure(.inputOutput, "--cwd: \(error): change to a directory that exists")
            }
        }
        for path in arguments.all("modtime") {
            modified.updateValue(try Self.time(of: path), forKey: Array(path.utf8))
        }
        var pipes = 0
        for path in arguments.all("hash") {
            var name = path
            if try Self.isUnnamedPipe(path) {
                // The shell chooses the number of the descriptor, so the path carries no information.
                pipes += 1
                name = "<(\(pipes))"
            }
            contents.updateValue(try Self.digest(of: path, isPipe: name != path), forKey: Array(name.utf8))
        }
    }

    private static func time(of path: String) throws(Failure) -> Timestamp? {
        if path.isEmpty { throw .usage("run: --modtime: the file name is empty: give FILE") }
        do throws(Errno) {
            return try FileStatus.of(path).modified
        } catch {
            if error == .noEntry || error == .notDirectory { return nil }
            throw Failure(.inputOutput, "--modtime: \(path): \(error): give a file that can be accessed")
        }
    }

    /// Returns whether the path is an unnamed pipe, such as a shell's `<(…)`.
    ///
    /// An unnamed pipe can be read to its end; a named pipe may have no writer yet.
    private static func isUnnamedPipe(_ path: String) throws(Failure) -> Bool {
        do throws(Errno) {
            guard try FileStatus.of(path).kind == .other else { return false }
            return try FileDescriptor(opening: path, [.readOnly, .nonBlocking]).isUnnamedPipe()
        } catch {
            // The read of the file reports the error.
            return false
        }
    }

    private static func digest(of path: String, isPipe: Bool) throws(Failure) -> Digest? {
        if path.isEmpty { throw .usage("run: --hash: the file name is empty: give FILE") }
        var isRegular = true
        do throws(Errno) {
            // A device may be endless.
            isRegular = isPipe ? true : try FileStatus.of(path).kind == .regular
            if !isRegular { throw .invalidArgument }
            let file = try FileDescriptor(opening: path, .readOnly)
            var hash = SHA256()
            try file.forEachChunk(orThrow: { $0 }) { (chunk) throws(Errno) in hash.update(chunk) }
            return Digest(bytes: hash.finalize())
        } catch {
            if error == .noEntry || error == .notDirectory { return nil }
            let problem = isRegular ? "\(error)" : "it is not a regular file"
            throw Failure(.inputOutput, "--hash: \(path): \(problem): give a file that can be read")
        }
    }
}
