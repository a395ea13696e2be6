// SPDX-License-Identifier: Apache-2.0

import Platform

/// Words of `run` itself among those of the command.
enum Notice {
    /// Says in one line on standard error what went wrong without keeping the command from running.
    static func warn(_ message: String) {
        do throws(Errno) {
            try Terminal.write("diskcache: run: \(message.singleLine)\n", to: Terminal.standardError)
        } catch {
            // Nobody listens; the command matters more.
            return
        }
    }
}
