// SPDX-License-Identifier: Apache-2.0

import Platform

extension RemoteMarks {
    /// Returns the state that a new control file starts with, from the files of the directory.
    ///
    /// Two system calls if the directory has never used remote stores, otherwise six.
    init(in root: borrowing Directory) throws(Errno) {
        // Writers record changes from the start, even if the first process that writes does not know of the remote stores.
        notesChanges = try root.presentStatus(of: StoreLayout.outbox) != nil
        let bytes = try ifExists { () throws(Errno) in
            try root.open(StoreLayout.versions, .readOnly).read(VersionFileHeader.byteCount)
        }
        if let header = bytes.flatMap({ VersionFileHeader($0) }), !header.isUnsettled {
            cleared = header.cleared(at: .now)
            clock = max(header.limit, cleared)
        } else if bytes != nil || notesChanges {
            clock = .uncertain(at: .now)
        }
    }
}
