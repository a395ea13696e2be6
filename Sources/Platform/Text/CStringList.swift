// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A list of C strings that ends with a null pointer, as execve(2) and getopt(3) expect it.
@safe
struct CStringList: ~Copyable {
    let base: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
    let count: Int

    /// Copies strings, as bytes without NUL.
    init(_ words: [[UInt8]]) {
        count = words.count
        unsafe base = .allocate(capacity: count + 1)
        for (index, word) in words.enumerated() {
            let text = (word + [0]).map(CChar.init(bitPattern:))
            unsafe (base + index).initialize(to: strdup(text))
        }
        unsafe (base + count).initialize(to: nil)
    }

    deinit {
        for index in 0..<count { unsafe free(base[index]) }
        unsafe base.deallocate()
    }

    /// Returns the text of a string.
    subscript(index: Int) -> String {
        unsafe base[index].map { unsafe String(cString: $0) } ?? ""
    }
}
