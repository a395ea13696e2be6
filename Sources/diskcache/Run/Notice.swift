// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// Words of `run` itself among those of the command.
enum Notice {
    /// Says in one line on standard error what went wrong without keeping the command from running.
    static func warn(_ message: String) {
        do throws(Errno) {
            try Output.complain("run: \(message)")
        } catch {
            // Nobody listens; the command matters more.
            return
        }
    }

    /// Says why the cache is of no use for this command.
    static func warnUncached(_ error: any Error) {
        let reason =
            switch error {
            case let error as CacheError: error.message
            case let failure as Failure: failure.message
            case Recording.Failure.reading(let error): "read what is stored: \(error)"
            default: "\(error)"
            }
        warn("the result is neither shared nor stored: \(reason)")
    }
}
