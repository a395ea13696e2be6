// SPDX-License-Identifier: Apache-2.0

/// Messages of `run` itself, in contrast to the command's output.
enum Notice {
    /// Reports in one line on standard error a problem that does not stop the command.
    static func warn(_ message: String) {
        // If standard error can't be written, the command matters more.
        try? Output.complain("run: \(message)")
    }

    /// Reports why the cache can't be used for this command.
    static func warnUncached(_ error: any Error) {
        warn("the result is neither shared nor stored: \(error)")
    }
}
