// SPDX-License-Identifier: Apache-2.0

import CacheStore
package import DiskCache
import Platform

/// The command's exit status: 0, 1 for a miss, otherwise as in sysexits.h.
package enum ExitStatus: Int32 {
    case done = 0
    /// A miss, or an empty result.
    case miss = 1
    case usage = 64
    /// Corrupt data was found.
    case dataError = 65
    /// A server, or the program that accesses it, is unavailable.
    case unavailable = 69
    case `internal` = 70
    case cannotCreate = 73
    case inputOutput = 74
    /// A lock is held, or the limits leave no space: a later attempt may succeed.
    case temporary = 75
    case permission = 77
    case configuration = 78
    /// The program that should replace this process can't be executed; the same status as env(1)'s.
    case notExecutable = 126
    /// The program does not exist; the same status as env(1)'s.
    case notFound = 127

    package init(_ code: CacheError.Code) {
        self =
            switch code {
            case .notACache, .newerFormat, .badConfiguration: .configuration
            case .notADirectory, .directoryVanished, .noSpace, .readOnly, .valueTooLarge: .cannotCreate
            case .permissionDenied, .untrusted: .permission
            case .busy, .noRoom, .timedOut: .temporary
            case .invalidArgument: .usage
            case .inputOutput: .inputOutput
            default: .internal
            }
    }
}

/// An error that ends the command and is reported in one line.
package struct Failure: Error, CustomStringConvertible {
    package let status: ExitStatus
    /// What failed, why, and what the user can do.
    package let message: String

    package var description: String { message }

    package init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }

    /// Returns an error for a mistake on the command line.
    package static func usage(_ message: String) -> Failure {
        Failure(.usage, message)
    }
}

/// Runs system calls on files other than the cache and the output, and adds the operation to the message of a failure.
func doing<Value: ~Copyable>(
    _ operation: String,
    _ body: () throws(Errno) -> Value
) throws(CacheError) -> Value {
    do throws(Errno) {
        return try body()
    } catch {
        throw CacheError(
            .inputOutput,
            "\(operation): \(error): \(CacheError.advice(on: error))",
            cause: error
        )
    }
}
