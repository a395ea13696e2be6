// SPDX-License-Identifier: Apache-2.0

import Platform

extension Store {
    /// Changes the configuration for all processes, which follow it within a second.
    ///
    /// `change` is called again if the disk was full.
    ///
    /// - Throws: ``CacheError/Code/badConfiguration`` if the present configuration can't be read; then it is left unchanged.
    package func configure(
        _ change: (inout DirectoryConfiguration) throws(CacheError) -> Void
    ) throws(CacheError) {
        // The disk may be full because of the limit that is changed here.
        let now = Timestamp.now
        var wait = SpaceWait()
        while true {
            do throws(CacheError) {
                try update(change)
                return followConfiguration()
            } catch {
                guard makesSpace(after: error, forLength: 0, now: now, &wait) else { throw error }
            }
        }
    }

    private func update(
        _ change: (inout DirectoryConfiguration) throws(CacheError) -> Void
    ) throws(CacheError) {
        var (before, after) = (CacheLimits(), CacheLimits())
        try followed.update { (configuration) throws(CacheError) in
            before = configuration.limits
            try change(&configuration)
            // The filter of the present control file lacks the keys that were stored without that file.
            if before.sharesMemory == false, configuration.limits.sharesMemory != false {
                try control.discard()
            }
            after = configuration.limits
        }
        noteEventLog(before, after)
    }

    /// Counts the files of the event log as the new limits require, until the next sweep counts them.
    private func noteEventLog(_ before: CacheLimits, _ limits: CacheLimits) {
        if before.eventLogSize == limits.eventLogSize { return }
        let change = eventLogExcess(limits) - eventLogExcess(before)
        let noted = max(control.overhead ?? 0, directory.usualOverhead)
        if change != 0 { control.noteOverhead(bytes: noted + change) }
    }
}
