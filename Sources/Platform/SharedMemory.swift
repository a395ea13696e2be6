// SPDX-License-Identifier: Apache-2.0

/// The file system in memory whose files processes map to share them: shm_overview(7).
package enum SharedMemory {
    package static let path = "/dev/shm"

    /// Opens its directory.
    ///
    /// - Throws: ``Errno/noDevice`` where it is on a file system that is not in memory: a store into a mapped file might
    ///   need room there.
    package static func open() throws(Errno) -> Directory {
        let directory = try Directory(opening: path)
        guard try directory.descriptor.fileSystemKind().isVolatile else { throw .noDevice }
        return directory
    }
}
