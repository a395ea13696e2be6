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
        let found = bestEffort { () throws(Errno) in
            try version(of: Directory(opening: path).open(StoreLayout.control, .readOnly))
        }
        guard let found, found != ControlLayout.version else { return nil }
        return found
    }

    /// Whether a file begins as control files of all layouts do.
    static func isControl(_ file: borrowing FileDescriptor) throws(Errno) -> Bool {
        var reader = ByteReader(try file.read(8))
        return reader.number(width: 8) == ControlLayout.magic
    }

    /// nil for what is no control file.
    private static func version(of file: borrowing FileDescriptor) throws(Errno) -> UInt64? {
        var reader = ByteReader(try file.read(16))
        guard reader.number(width: 8) == ControlLayout.magic else { return nil }
        return reader.number(width: 8)
    }
}
