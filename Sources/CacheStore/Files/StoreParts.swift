// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a store consists of, for what works on all of it: the room for puts, sweeps, verifications.
package struct StoreParts: Sendable {
    package let directory: StoreDirectory
    let configuration: FollowedConfiguration
    let control: Control
    let counters: StoreCounters
    let objects: ObjectStore
    let entries: EntryStore
    let objectStripes: Stripes
    let entryStripes: Stripes
    let janitor: JanitorLock

    /// Where removals are logged; nil: nowhere.
    package var log: EventLog? {
        configuration.present.eventLogSize.map { EventLog(in: directory, limit: $0) }
    }

    /// Bytes on disk that are to be reckoned with beside entries and objects: what the last sweep found, and at least
    /// what there will be once every shard is made.
    var overhead: Int64 { max(control.overhead ?? 0, directory.usualOverhead) }

    func stripes(_ tree: StoreScan.Tree) -> Stripes { tree == .entries ? entryStripes : objectStripes }
}

extension StoreDirectory {
    /// What the file system has; one system call.
    func space() throws(StoreError) -> FileSystemSpace {
        try describing("look at the file system of", path) { () throws(Errno) in
            try root.descriptor.fileSystemSpace()
        }
    }
}
