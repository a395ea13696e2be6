// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// The maximum size of a file that this process may write, RLIMIT_FSIZE.
///
/// A write that begins at or beyond the limit ends a process that does not handle SIGXFSZ. A write that only reaches the
/// limit is cut short, without a signal. So the limit is read (`getrlimit`) after a write was cut short, and also before
/// the first write if a limit was set when last checked. In a process without a limit no write costs an extra call.
package enum FileSizeLimit {
    /// Whether a limit was set when last checked.
    private static let isSet = Atomic<Bool>(present() != nil)

    /// Checks whether a limit is set now; this process or another one can set it at any time, prlimit(2).
    ///
    /// C: `getrlimit`.
    package static func follow() {
        isSet.store(present() != nil, ordering: .relaxed)
    }

    /// Checks that the process may write up to `byteCount`; beyond the limit the kernel would end it with a signal.
    ///
    /// C: `getrlimit`.
    ///
    /// - Throws: ``Errno/fileTooLarge``.
    package static func check(_ byteCount: Int) throws(Errno) {
        if let limit = present(), limit < Int64(byteCount) { throw .fileTooLarge }
    }

    /// Returns the limit in bytes; nil if there is no limit.
    private static func present() -> Int64? {
        var limit = rlimit()
        guard !SystemCall.getLimit.isRefused,
            unsafe getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0,
            limit.rlim_cur != rlim_t.max
        else { return nil }
        return Int64(clamping: limit.rlim_cur)
    }

    /// Refuses a write to `file`, at `offset` or else at the file's current position, that would begin at or beyond the
    /// limit.
    ///
    /// It makes no system call if no limit was set when last checked and `wasCutShort` is false; otherwise one, and up to
    /// three more if a limit is set.
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
