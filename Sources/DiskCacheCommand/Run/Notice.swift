// SPDX-License-Identifier: Apache-2.0

/// Messages of `run` itself, as opposed to the output of its command.
enum Notice {
    /// Reports a problem that does not stop the command, in one line on standard error.
    static func warn(_ message: String) {
        // If standard error can't be written, the command must still run.
        try? Output.complain("run: \(message)")
    }

    /// Reports why this run can't use the cache.
    static func warnUncached(_ error: any Error) {
        warn("the result is neither shared nor stored: \(error)")
    }
}
