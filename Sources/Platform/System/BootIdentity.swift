// SPDX-License-Identifier: Apache-2.0

/// The identity of the current boot, to detect that the contents of volatile memory are lost.
package enum BootIdentity {
    /// The 122 random bits that Linux generates at each boot, the same for all processes and containers; nil if `/proc` is
    /// not mounted.
    ///
    /// Reading them takes three system calls, once per process; proc(5), `/proc/sys/kernel/random/boot_id`.
    package static let current = ProcFiles.text("/proc/sys/kernel/random/boot_id").flatMap { parse($0) }

    /// Parses `f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n` as two halves; returns nil for any other form.
    package static func parse(_ text: String) -> (UInt64, UInt64)? {
        let digits = text.filter { !$0.isWhitespace && $0 != "-" }
        guard digits.utf8.count == 32, let high = UInt64(digits.prefix(16), radix: 16),
            let low = UInt64(digits.suffix(16), radix: 16)
        else { return nil }
        return (high, low)
    }
}
