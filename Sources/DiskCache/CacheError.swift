// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// Why a cache could not do what it was asked to.
///
/// A key that is not there, has expired, or whose value was damaged is a miss and never an error.
public struct CacheError: Error, Sendable, Equatable {
    /// What kind of trouble it is.
    ///
    /// More may be added, so switches over it need a default.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Value: String {
            case notACache, newerFormat, notADirectory, directoryVanished, noSpace, permissionDenied
            case readOnly, busy, invalidArgument, inputOutput, encoding, closed
            case valueTooLarge, noRoom, badConfiguration, forked, untrusted
        }

        private let value: Value

        /// The directory holds other files and no cache; it was left as it is.
        public static let notACache = Code(value: .notACache)
        /// The directory was made by a newer version of this library.
        public static let newerFormat = Code(value: .newerFormat)
        /// The path, or a part of it, is no directory.
        public static let notADirectory = Code(value: .notADirectory)
        /// The directory was deleted or moved away while it was open.
        public static let directoryVanished = Code(value: .directoryVanished)
        /// The file system is full, or a quota is.
        public static let noSpace = Code(value: .noSpace)
        /// This user may not do that here.
        public static let permissionDenied = Code(value: .permissionDenied)
        /// Others may write the directory, and so forge what would be read from it: everybody, or another user who may
        /// have made it, in a place such as `/tmp`.
        public static let untrusted = Code(value: .untrusted)
        /// The file system is mounted for reading only.
        public static let readOnly = Code(value: .readOnly)
        /// A lock was not to be had in time.
        public static let busy = Code(value: .busy)
        /// An argument makes no sense: an empty key, a negative lifetime, too much metadata.
        public static let invalidArgument = Code(value: .invalidArgument)
        /// The kernel reported any other error; see ``CacheError/errno``.
        public static let inputOutput = Code(value: .inputOutput)
        /// The value is longer than the directory's limits allow; see ``CacheLimits``.
        public static let valueTooLarge = Code(value: .valueTooLarge)
        /// The directory is at a limit, and nothing could be evicted in time to make room.
        public static let noRoom = Code(value: .noRoom)
        /// The directory's `config.json` can't be read as what it should be.
        public static let badConfiguration = Code(value: .badConfiguration)
        /// A value could not be encoded.
        public static let encoding = Code(value: .encoding)
        /// The cache was closed.
        public static let closed = Code(value: .closed)
        /// The cache was opened by the process that this one was forked from: open it anew.
        public static let forked = Code(value: .forked)

        /// The name of the code, such as `noSpace`.
        public var description: String { value.rawValue }
    }

    /// What kind of trouble it is.
    public let code: Code
    /// One line: what failed, why, and what to do.
    public let message: String
    /// The error number of the system call that failed, errno(3), where one is behind it.
    public let errno: Int32?
    /// The file or directory in question.
    public let path: String?

    init(_ code: Code, _ message: String, errno: Int32? = nil, path: String? = nil) {
        self.code = code
        self.message = message
        self.errno = errno
        self.path = path
    }
}

extension CacheError: CustomStringConvertible {
    /// The same as ``message``.
    public var description: String { message }
}

extension CacheError {
    init(_ error: StoreError, directoryIsGone: Bool = false) {
        let (code, reason, advice) = Self.explain(error, directoryIsGone)
        self.init(
            code,
            "\(error.operation) \(error.path): \(reason): \(advice)",
            errno: error.errno?.rawValue,
            path: error.path
        )
    }

    /// The public code of a store's.
    static func code(_ code: StoreError.Code) -> Code {
        explain(StoreError(code, "", path: ""), false).0
    }

    private static func explain(
        _ error: StoreError,
        _ directoryIsGone: Bool
    ) -> (Code, reason: String, advice: String) {
        let reason = error.errno?.description ?? "\(error.code)"
        if directoryIsGone {
            return (
                .directoryVanished, "the directory was deleted or moved while open", "open the cache anew"
            )
        }
        return switch error.code {
        case .notACache where error.detail != nil:
            (
                .notACache, error.detail ?? reason,
                "move that file away: the cache makes its own anew; nothing was changed"
            )
        case .notACache:
            (
                .notACache, "it is no cache and not empty",
                "choose an empty or a new directory; nothing was changed"
            )
        case .newerFormat:
            (.newerFormat, "a newer version made it", "update diskcache, or use another directory")
        case .notADirectory:
            (
                .notADirectory, error.detail ?? "it is no directory",
                error.detail == nil ? "choose another path" : misplacedAdvice
            )
        case .noSpace where error.errno == .fileTooLarge:
            (.noSpace, reason, "raise the limit of this process on the size of files (ulimit -f)")
        case .noSpace: (.noSpace, reason, "free some space, or trim the cache with `diskcache gc --max-size`")
        case .permissionDenied:
            (
                .permissionDenied, reason,
                "run this as the user who owns it, or use a directory of your own: one user a cache"
            )
        case .untrusted:
            (
                .untrusted, error.detail ?? "others may write it",
                "use a new directory; or, if all that is in it is to be trusted, chmod o-w or chown it"
            )
        case .readOnly: (.readOnly, reason, "choose a directory on a file system that can be written")
        case .busy:
            (
                .busy, error.detail ?? "a lock was not free in time",
                "try again; a process that holds it may be stopped"
            )
        case .forked:
            (.forked, "it was opened before this process was forked", "open it anew in this process")
        case .invalidArgument: (.invalidArgument, "at most 65536 fit", "store less of it")
        case .valueTooLarge:
            (
                .valueTooLarge, error.detail ?? "it is longer than the limits allow",
                "raise the limit with `diskcache config set`, or do not cache it"
            )
        case .noRoom:
            (
                .noRoom, error.detail ?? "a limit is reached",
                "try again, or change the limit with `diskcache config set` (min-free: a lower one)"
            )
        case .badConfiguration:
            (
                .badConfiguration, error.detail ?? "it is no configuration",
                "correct it, or delete it to be without limits"
            )
        case .unreachableControl:
            (
                .busy, "processes that use the cache share memory in a /dev/shm that this one does not see",
                "give them one /dev/shm (containers: --ipc), or put the cache on ext4"
            )
        case .inputOutput:
            (
                .inputOutput, error.detail ?? reason,
                error.detail == nil ? advice(on: error.errno) : misplacedAdvice
            )
        }
    }

    private static let misplacedAdvice = "move it away, it is none of the cache's"

    static func advice(on errno: Errno?) -> String {
        switch errno {
        case .outOfMemory: "use the calls for files, which need little memory, or raise the limit (ulimit -v)"
        case .tooManyOpenFiles: "close some files, or raise the limit (ulimit -n)"
        case .tooManyLinks, .nameTooLong, .noEntry: "choose another path"
        default: "run `diskcache doctor` on the directory"
        }
    }
}
