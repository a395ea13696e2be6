// SPDX-License-Identifier: Apache-2.0

import Platform

/// The control file of another version of the library.
package enum ControlVersion {
    /// The layout of the control file in the cache at `path`, if it is not the present one; nil: it is, or there is none
    /// that can be read.
    ///
    /// To be asked before the cache is opened, which puts a file of the present layout in its place, or tells why it
    /// can't. Four system calls.
    package static func foreign(in path: String) -> UInt64? {
        let bytes: [UInt8]
        do throws(Errno) {
            let root = try Directory(opening: path)
            bytes = try root.open(StoreLayout.control, .readOnly).read(16)
        } catch {
            return nil
        }
        guard bytes.count == 16, word(bytes[..<8]) == ControlLayout.magic else { return nil }
        let version = word(bytes[8...])
        return version == ControlLayout.version ? nil : version
    }

    /// Whether a file begins as control files of all layouts do.
    static func isControl(_ file: borrowing FileDescriptor) throws(Errno) -> Bool {
        let bytes = try file.read(8)
        return bytes.count == 8 && word(bytes[...]) == ControlLayout.magic
    }

    /// In the processor's own order, as the file has it.
    private static func word(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        let word = bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
        return UInt64(littleEndian: word)
    }
}
