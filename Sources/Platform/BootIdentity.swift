// SPDX-License-Identifier: Apache-2.0

/// Which boot of the machine this is: what was in memory only before it is lost.
package enum BootIdentity {
    /// The 122 random bits that Linux draws at each boot, the same for all processes and containers; nil where
    /// `/proc` is not mounted.
    ///
    /// Three system calls, once a process; proc(5), `/proc/sys/kernel/random/boot_id`.
    package static let current: (UInt64, UInt64)? = {
        do throws(Errno) {
            let file = try FileDescriptor(opening: "/proc/sys/kernel/random/boot_id", .readOnly)
            return parse(try file.readToEnd(limit: 64) ?? [])
        } catch {
            // Where it can't be read there is none: that is what nil says.
            return nil
        }
    }()

    /// `f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n` as two halves; nil for anything else.
    package static func parse(_ bytes: [UInt8]) -> (UInt64, UInt64)? {
        let digits = String(decoding: bytes, as: UTF8.self).filter { !$0.isWhitespace && $0 != "-" }
        guard digits.utf8.count == 32, let high = UInt64(digits.prefix(16), radix: 16),
            let low = UInt64(digits.suffix(16), radix: 16)
        else { return nil }
        return (high, low)
    }
}
