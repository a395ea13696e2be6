// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// Messages of `run` itself among the command's output.
enum Notice {
    /// Reports in one line on standard error what went wrong without stopping the command.
    static func warn(_ message: String) {
        // Where nobody reads it, the command matters more.
        try? Output.complain("run: \(message)")
    }

    /// Reports why the cache can't be used for this command.
    static func warnUncached(_ error: any Error) {
        let reason =
            switch error {
            case let error as CacheError: error.message
            case let failure as Failure: failure.message
            case let error as Recording.Unreadable: "read what is stored: \(error.reason)"
            default: "\(error)"
            }
        warn("the result is neither shared nor stored: \(reason)")
    }
}
