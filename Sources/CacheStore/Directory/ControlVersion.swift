// SPDX-License-Identifier: Apache-2.0

import Platform

/// Recognizes the control files of other versions of the library.
package enum ControlVersion {
    /// Returns the layout version of the control file in the cache at `path` if it is not the present one, otherwise nil.
    ///
    /// Call it before opening the cache: opening replaces the file by one of the present layout, or reports why it can't.
    /// Also returns nil if there is no readable control file. Four system calls.
    package static func foreign(in path: String) -> UInt64? {
        let found = bestEffort { () throws(Errno) in
            try version(of: Directory(opening: path).open(StoreLayout.control, .readOnly))
        }
        guard let found, found != ControlLayout.version else { return nil }
        return found
    }

    /// Returns whether a file begins like control files of all layouts.
    static func isControl(_ file: borrowing FileDescriptor) throws(Errno) -> Bool {
        var reader = ByteReader(try file.read(8))
        return reader.number(width: 8) == ControlLayout.magic
    }

    /// Returns the layout version; nil if the file is not a control file.
    private static func version(of file: borrowing FileDescriptor) throws(Errno) -> UInt64? {
        var reader = ByteReader(try file.read(16))
        guard reader.number(width: 8) == ControlLayout.magic else { return nil }
        return reader.number(width: 8)
    }
}
