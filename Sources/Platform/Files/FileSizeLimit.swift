// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// How long a file this process may make, RLIMIT_FSIZE.
///
/// A write that begins at the limit or beyond ends a process that has not arranged for SIGXFSZ; one that only reaches
/// it is cut short, without a signal. So a limit is asked for (`getrlimit`) where a write was cut short, and before the
/// first where there was a limit when that was last looked at: in a process without one no write costs a call more.
package enum FileSizeLimit {
    /// Whether there was one when last looked at.
    private static let isSet = Atomic<Bool>(present() != nil)

    /// Looks whether there is one now: it can be set at any time, by others too, prlimit(2).
    ///
    /// C: `getrlimit`.
    package static func follow() {
        isSet.store(present() != nil, ordering: .relaxed)
    }

    /// Whether the process may write up to `byteCount`: else the kernel would end it with a signal.
    ///
    /// C: `getrlimit`.
    ///
    /// - Throws: ``Errno/fileTooLarge``.
    package static func check(_ byteCount: Int) throws(Errno) {
        if let limit = present(), limit < Int64(byteCount) { throw .fileTooLarge }
    }

    /// Bytes; nil: none.
    private static func present() -> Int64? {
        var limit = rlimit()
        guard !SystemCall.getLimit.isRefused,
            unsafe getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0,
            limit.rlim_cur != rlim_t.max
        else { return nil }
        return Int64(clamping: limit.rlim_cur)
    }

    /// Refuses to write to `file` where that would begin at the limit; at `offset`, or where the file stands.
    ///
    /// No system call where there was no limit when last looked at and `wasCutShort` is false; else one, and three more
    /// where there is one.
    ///
    /// - Throws: ``Errno/fileTooLarge``.
    static func admit(
        _ file: borrowing FileDescriptor,
        at offset: Int? = nil,
        wasCutShort: Bool = false
    ) throws(Errno) {
        guard wasCutShort || isSet.load(ordering: .relaxed) else { return }
        let limit = present()
        isSet.store(limit != nil, ordering: .relaxed)
        guard let limit else { return }
        let status = try file.status()
        // Pipes and devices have no length.
        guard status.kind == .regular else { return }
        let appends = try file.statusFlags() & O_APPEND != 0
        let start = appends ? status.size : offset.map(Int64.init) ?? file.offset
        if start >= limit { throw .fileTooLarge }
    }
}
