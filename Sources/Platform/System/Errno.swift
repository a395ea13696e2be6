// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// The error number of a failed system call, errno(3).
package struct Errno: Error, Equatable, Hashable, Sendable {
    /// The number as returned by the kernel.
    package let rawValue: CInt

    package init(rawValue: CInt) {
        self.rawValue = rawValue
    }

    /// The error of the calling thread's last failed call.
    ///
    /// Read it before any other code runs.
    static var current: Errno { Errno(rawValue: errno) }

    /// Throws ``current``; returns after EINTR, so that the caller repeats the call.
    @inline(__always)
    static func throwCurrentUnlessInterrupted() throws(Errno) {
        let error = current
        if error != .interrupted { throw error }
    }

    package static let noEntry = Errno(rawValue: ENOENT)
    package static let exists = Errno(rawValue: EEXIST)
    package static let interrupted = Errno(rawValue: EINTR)
    package static let wouldBlock = Errno(rawValue: EWOULDBLOCK)
    package static let accessDenied = Errno(rawValue: EACCES)
    package static let notPermitted = Errno(rawValue: EPERM)
    package static let readOnlyFileSystem = Errno(rawValue: EROFS)
    package static let noDeviceOrAddress = Errno(rawValue: ENXIO)
    package static let tooManyOpenFiles = Errno(rawValue: EMFILE)
    package static let tooManyOpenFilesInSystem = Errno(rawValue: ENFILE)
    package static let notExecutable = Errno(rawValue: ENOEXEC)
    package static let noSpace = Errno(rawValue: ENOSPC)
    package static let quotaExceeded = Errno(rawValue: EDQUOT)
    package static let fileTooLarge = Errno(rawValue: EFBIG)
    package static let crossDevice = Errno(rawValue: EXDEV)
    package static let noDevice = Errno(rawValue: ENODEV)
    package static let notDirectory = Errno(rawValue: ENOTDIR)
    package static let isDirectory = Errno(rawValue: EISDIR)
    package static let tooManyLinks = Errno(rawValue: ELOOP)
    package static let nameTooLong = Errno(rawValue: ENAMETOOLONG)
    package static let noData = Errno(rawValue: ENODATA)
    package static let notSupported = Errno(rawValue: EOPNOTSUPP)
    package static let notImplemented = Errno(rawValue: ENOSYS)
    package static let outOfRange = Errno(rawValue: ERANGE)
    package static let argumentListTooLong = Errno(rawValue: E2BIG)
    package static let invalidArgument = Errno(rawValue: EINVAL)
    package static let timedOut = Errno(rawValue: ETIMEDOUT)
    package static let inputOutput = Errno(rawValue: EIO)
    /// The error of deleting a mount point.
    package static let busy = Errno(rawValue: EBUSY)
    /// The errors that file systems report for damaged metadata and for a wrong checksum.
    package static let structureNeedsCleaning = Errno(rawValue: EUCLEAN)
    package static let badMessage = Errno(rawValue: EBADMSG)
    package static let badDescriptor = Errno(rawValue: EBADF)
    package static let outOfMemory = Errno(rawValue: ENOMEM)
    package static let brokenPipe = Errno(rawValue: EPIPE)
}

extension Errno: CustomStringConvertible {
    /// The C library's message and the symbol: "No such file or directory (ENOENT)".
    package var description: String {
        // strerror(3) is not reentrant. This is the POSIX variant of strerror_r(3), which returns 0 on success.
        let words = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let base = buffer.baseAddress, unsafe strerror_r(rawValue, base, buffer.count) == 0 else {
                return "error \(rawValue)"
            }
            return unsafe String(cString: base)
        }
        guard let symbol = unsafe cplatform_errno_name(rawValue) else { return words }
        return unsafe "\(words) (\(String(cString: symbol)))"
    }
}
