// SPDX-License-Identifier: Apache-2.0

import Glibc

/// C strings in a list that ends with a null pointer, as execve(2) and getopt(3) take it.
@safe
struct CStringList: ~Copyable {
    let base: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
    let count: Int

    /// Takes over strings of malloc(3).
    init(owning strings: [UnsafeMutablePointer<CChar>?]) {
        count = unsafe strings.count
        unsafe base = .allocate(capacity: count + 1)
        for index in 0..<count { unsafe (base + index).initialize(to: strings[index]) }
        unsafe (base + count).initialize(to: nil)
    }

    /// Copies strings of bytes without NUL.
    init(_ words: [[UInt8]]) {
        unsafe self.init(owning: words.map { unsafe strdup(($0 + [0]).map(CChar.init(bitPattern:))) })
    }

    deinit {
        for index in 0..<count { unsafe free(base[index]) }
        unsafe base.deallocate()
    }

    /// The text of a string.
    subscript(index: Int) -> String {
        unsafe base[index].map { unsafe String(cString: $0) } ?? ""
    }
}
