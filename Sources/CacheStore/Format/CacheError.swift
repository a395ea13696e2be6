// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The error of a cache operation.
///
/// A key that is absent or has expired, or whose value was damaged, is a miss and never an error.
public struct CacheError: Error, Sendable, Equatable {
    /// What went wrong.
    ///
    /// More codes may be added. The raw value is the name of the code, such as "noSpace".
    @nonexhaustive
    public enum Code: String, Sendable {
        /// The directory contains other files and is not a cache.
        ///
        /// It is left unchanged.
        case notACache
        /// The directory was made by a newer version of this library.
        case newerFormat
        /// The path, or a part of it, is not a directory.
        case notADirectory
        /// The directory was deleted or moved away while it was open.
        case directoryVanished
        /// The file system is full, or a quota is exhausted.
        case noSpace
        /// This user lacks permission.
        case permissionDenied
        /// Other users can write to the directory, so they could forge values.
        ///
        /// Either all users can write to it, or another user owns it and may have created it in a place such as `/tmp`. A
        /// file of credentials that other users can read or write is reported with this code, too.
        case untrusted
        /// The file system is mounted read-only.
        case readOnly
        /// A lock was not free in time.
        case busy
        /// An argument is invalid: an empty key, a negative lifetime, too much metadata.
        case invalidArgument
        /// The kernel reported another error; see ``CacheError/errno``.
        case inputOutput
        /// The value is longer than the directory's limits allow; see ``CacheLimits``.
        case valueTooLarge
        /// The directory is at a limit, and nothing could be evicted in time to make room.
        case noRoom
        /// The directory's `config.json`, or another configuration, is invalid.
        case badConfiguration
        /// A value could not be encoded.
        case encoding
        /// Another caller is computing the value and did not finish within the time limit.
        case timedOut
        /// The cache was closed.
        case closed
        /// The cache was opened before this process was forked.
        ///
        /// Open it again in this process.
        case forked
    }

    /// What went wrong.
    public let code: Code
    /// One line: what failed, why, and what to do.
    public let message: String
    /// The error number (errno) of the system call that failed, if one did.
    public var errno: Int32? { cause?.rawValue }
    /// The file or directory in question.
    public let path: String?
    /// The error of the system call that failed, if one did.
    package let cause: Errno?
    /// The part of ``message`` that states the reason; nil if the message was not composed from parts.
    package let reason: String?

    package init(
        _ code: Code,
        _ message: String,
        cause: Errno? = nil,
        path: String? = nil,
        reason: String? = nil
    ) {
        self.code = code
        self.message = message
        self.cause = cause
        self.path = path
        self.reason = reason
    }
}

extension CacheError: CustomStringConvertible {
    /// The same as ``message``.
    public var description: String { message }
}

extension CacheError {
    /// Composes the message from the operation, the path, the reason and advice.
    ///
    /// - Parameters:
    ///   - operation: The operation that failed: "write an object".
    ///   - cause: The kernel's error, if there is one.
    ///   - detail: The reason, if the code alone does not state it.
    package init(
        _ code: Code,
        to operation: String,
        path: String,
        cause: Errno? = nil,
        detail: String? = nil
    ) {
        let reason = detail ?? Self.reason(code, cause)
        let advice = Self.advice(code, cause, hasDetail: detail != nil)
        self.init(
            code,
            "\(operation) \(path): \(reason): \(advice)",
            cause: cause,
            path: path,
            reason: reason
        )
    }

    /// Classifies a failed system call by what the user can do about it.
    package init(errno: Errno, _ operation: String, path: String) {
        let code: Code =
            switch errno {
            case .noSpace, .quotaExceeded, .fileTooLarge: .noSpace
            case .accessDenied, .notPermitted: .permissionDenied
            case .readOnlyFileSystem: .readOnly
            case .timedOut: .busy
            case .notDirectory: .notADirectory
            default: .inputOutput
            }
        self.init(code, to: operation, path: path, cause: errno, detail: errno.wordsOfNoFile)
    }

    /// Returns the reason for an error that has no detail.
    private static func reason(_ code: Code, _ cause: Errno?) -> String {
        switch code {
        case .notACache: "it is not a cache, and not empty"
        case .newerFormat: "a newer version created it"
        case .notADirectory: "it is not a directory"
        case .directoryVanished: "the directory was deleted or moved while open"
        case .busy: "a lock was not free in time"
        case .forked: "it was opened before this process was forked"
        case .invalidArgument: "at most 65536 fit"
        default: cause?.description ?? "\(code)"
        }
    }

    /// Returns the advice to the user.
    private static func advice(_ code: Code, _ cause: Errno?, hasDetail: Bool) -> String {
        let misplaced = "move it away: it does not belong to the cache"
        return switch code {
        case .notACache where hasDetail:
            "move that file away: the cache then makes its own; nothing was changed"
        case .notACache: "choose an empty or a new directory; nothing was changed"
        case .newerFormat: "update diskcache, or use another directory"
        case .notADirectory: hasDetail ? misplaced : "choose another path"
        case .directoryVanished: "open the cache again"
        case .noSpace where cause == .fileTooLarge:
            "raise the limit of this process on the size of files (ulimit -f)"
        case .noSpace: "free some space, or trim the cache with `diskcache gc --max-size`"
        case .permissionDenied:
            """
            run this as the user who owns it, or use a directory of your own: a cache has one user \
            (or allow it, if a sandbox forbids it)
            """
        case .untrusted: "use a new directory; or, if you trust everything in it, chmod o-w or chown it"
        case .readOnly: "choose a directory on a writable file system"
        case .busy: "try again; a process that holds it may be stopped"
        case .forked: "open it again in this process"
        case .invalidArgument: "store less of it"
        case .valueTooLarge: "raise the limit with `diskcache config set`, or do not cache it"
        case .noRoom: "try again, or change the limit with `diskcache config set` (min-free: a lower one)"
        case .badConfiguration: "correct it, or delete it to have no limits"
        default: hasDetail ? misplaced : advice(on: cause)
        }
    }

    /// Returns the advice for a failed system call, based on its error number alone.
    package static func advice(on errno: Errno?) -> String {
        switch errno {
        case .outOfMemory: "use the calls for files, which need little memory, or raise the limit (ulimit -v)"
        case .tooManyOpenFiles: "close some files, or raise the limit (ulimit -n)"
        case .tooManyLinks, .nameTooLong, .noEntry: "choose another path"
        case .notImplemented, .notSupported, .invalidArgument, .crossDevice:
            "allow that call, if a sandbox refuses it, or use a directory on another file system"
        case .accessDenied, .notPermitted: "allow that call, if a sandbox refuses it"
        case .inputOutput, .structureNeedsCleaning, .badMessage:
            "look for errors of the disk in the kernel's log (dmesg)"
        default: "run `diskcache doctor` on the directory"
        }
    }
}

/// Runs system calls, and adds the operation and the path to the error if one fails.
package func describing<Value: ~Copyable>(
    _ operation: @autoclosure () -> String,
    _ path: @autoclosure () -> String,
    _ body: () throws(Errno) -> Value
) throws(CacheError) -> Value {
    do throws(Errno) {
        return try body()
    } catch {
        throw CacheError(errno: error, operation(), path: path())
    }
}
