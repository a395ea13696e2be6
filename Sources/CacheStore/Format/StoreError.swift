// SPDX-License-Identifier: Apache-2.0

package import Platform

/// What went wrong on disk.
///
/// A missing, expired or corrupt entry is none of these, but a miss.
package struct StoreError: Error, Sendable, Equatable {
    /// What kind of trouble it is, which decides what the user can do about it.
    package enum Code: Sendable, Equatable {
        /// The directory holds other files and no cache.
        case notACache
        /// The directory was made by a newer version.
        case newerFormat
        /// Others may write the directory.
        case untrusted
        /// The path exists and isn't a directory.
        case notADirectory
        /// The file system is full, or the user's quota is.
        case noSpace
        /// The process may not do this.
        case permissionDenied
        /// The file system is mounted for reading only.
        case readOnly
        /// Timed out waiting for a lock.
        case busy
        /// It belongs to the process that this one was forked from.
        case forked
        /// The argument can't be stored.
        case invalidArgument
        /// The value is longer than the directory's limits allow, now and later.
        case valueTooLarge
        /// The directory is at a limit, and nothing could be evicted in time.
        case noRoom
        /// The directory's `config.json` is none.
        case badConfiguration
        /// Other processes share memory that this one can't see.
        case unreachableControl
        /// The kernel reported any other error.
        case inputOutput
    }

    package let code: Code
    /// What was being done: "write an object".
    package let operation: String
    package let path: String
    /// The kernel's error, where one is behind it.
    package let errno: Errno?
    /// Why, where the code alone does not say it.
    package let detail: String?

    package init(
        _ code: Code,
        _ operation: String,
        path: String,
        errno: Errno? = nil,
        detail: String? = nil
    ) {
        self.code = code
        self.operation = operation
        self.path = path
        self.errno = errno
        self.detail = detail
    }

    /// Sorts a failed system call by what the user can do about it.
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
        self.init(code, operation, path: path, errno: errno, detail: errno.wordsOfNoFile)
    }
}

extension Errno {
    /// What opening or reading says of a symbolic link, a directory, a pipe, a socket or a device.
    var tellsOfNoFile: Bool {
        self == .tooManyLinks || self == .isDirectory || self == .noDeviceOrAddress
    }

    /// What a look at a file in a shard says where there is none: the shard may be no directory.
    var tellsOfNothing: Bool { self == .noEntry || self == .notDirectory }

    /// What is in the place of a file or a directory of the cache's, where this tells of it.
    var wordsOfNoFile: String? {
        switch self {
        case .tooManyLinks: "a symbolic link is in its place"
        case .isDirectory: "a directory is in its place"
        case .noDeviceOrAddress: "a pipe, a socket or a device is in its place"
        case .notDirectory: "something is in the place of a directory"
        default: nil
        }
    }
}

/// Runs system calls, and says of a failure what was being done to which path.
package func describing<Value: ~Copyable>(
    _ operation: @autoclosure () -> String,
    _ path: @autoclosure () -> String,
    _ body: () throws(Errno) -> Value
) throws(StoreError) -> Value {
    do throws(Errno) {
        return try body()
    } catch {
        throw StoreError(errno: error, operation(), path: path())
    }
}

/// Gives nil where there is no such file in a shard, nor can be; every other error stays one.
func ifFiled<Value: ~Copyable>(_ body: () throws(Errno) -> Value) throws(Errno) -> Value? {
    do throws(Errno) {
        return try body()
    } catch {
        // A link in the shard's place may lead to itself.
        if error.tellsOfNothing || error == .tooManyLinks { return nil }
        throw error
    }
}

/// Runs what may fail without harm, and gives nil then: the caller says above why, and what makes up for it.
@discardableResult
func bestEffort<Value: ~Copyable>(_ body: () throws(Errno) -> Value) -> Value? {
    do throws(Errno) {
        return try body()
    } catch {
        return nil
    }
}
