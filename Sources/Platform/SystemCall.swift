// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Turns the -1 of a failed call into an ``Errno``, and calls again while a signal interrupts it.
///
/// The one place where errno is read: nothing may run between the call and it.
@inline(__always)
func valueOrErrno<Value: FixedWidthInteger & SignedInteger>(
    _ call: () -> Value
) throws(Errno) -> Value {
    while true {
        let value = call()
        if value != -1 { return value }
        let error = Errno.current
        if error != .interrupted { throw error }
    }
}

/// The same for a call whose value says nothing but that it succeeded.
@inline(__always)
func nothingOrErrno(_ call: () -> CInt) throws(Errno) {
    _ = try valueOrErrno(call)
}

/// Gives nil where what was asked for is not there (ENOENT); every other error stays one.
package func ifExists<Value: ~Copyable>(_ body: () throws(Errno) -> Value) throws(Errno) -> Value? {
    do throws(Errno) {
        return try body()
    } catch {
        if error == .noEntry { return nil }
        throw error
    }
}
