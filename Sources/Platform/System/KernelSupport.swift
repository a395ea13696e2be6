// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc
import Synchronization

/// Features of the running kernel, determined once per process.
package enum KernelSupport {
    /// Whether getxattrat exists (Linux 6.13).
    ///
    /// If it exists, a call on an invalid descriptor fails with EBADF, otherwise with ENOSYS (or EPERM, under an old
    /// seccomp profile).
    package static var attributeCallsAt: Bool { hasAttributeCallsAt.load(ordering: .relaxed) }

    /// A test may set this to false, in a separate process.
    static let hasAttributeCallsAt: Atomic<Bool> = {
        let result = unsafe cplatform_getxattrat(-1, RelativePath("x").cPath, "user.x", nil, 0)
        return Atomic(result == -1 && Errno.current == .badDescriptor)
    }()

    /// Whether linkat(AT_EMPTY_PATH) works for unprivileged processes: since Linux 6.10, commit 42bd2af5950456d46.
    package static let emptyPathLinks: Bool = {
        var name = utsname()
        guard unsafe uname(&name) == 0 else { return false }
        let release = unsafe withUnsafeBytes(of: &name.release) { buffer in
            unsafe String(decoding: buffer.prefix { $0 != 0 }, as: UTF8.self)
        }
        let numbers = release.split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
        return numbers.count == 2 && (numbers[0], numbers[1]) >= (6, 10)
    }()
}
