// SPDX-License-Identifier: Apache-2.0

/// Messages of `run` itself among the command's output.
enum Notice {
    /// Reports in one line on standard error what went wrong without stopping the command.
    static func warn(_ message: String) {
        // Where nobody reads it, the command matters more.
        try? Output.complain("run: \(message)")
    }

    /// Reports why the cache can't be used for this command.
    static func warnUncached(_ error: any Error) {
        warn("the result is neither shared nor stored: \(error)")
    }
}
