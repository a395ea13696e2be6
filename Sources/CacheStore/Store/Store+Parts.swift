// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a store has the room for puts, the log and the janitor lock do.
extension Store {
    // MARK: Room

    /// Claims room, by the limits as they are now; see ``Room/claim(forLength:record:entries:isWritten:now:_:)``.
    func claimRoom(
        forLength length: Int,
        record: Int,
        entries: Int = 1,
        isWritten: Bool = false,
        now: Timestamp,
        _ terms: inout RoomTerms
    ) throws(CacheError) -> RoomClaim? {
        if parts.configuration.isDue() { followConfiguration() }
        return try room.claim(
            forLength: length,
            record: record,
            entries: entries,
            isWritten: isWritten,
            now: now,
            &terms
        )
    }

    // MARK: Log

    /// Logs that one key was removed, if there is a log.
    func log(_ cause: LoggedRemoval.Cause, of key: Digest, name: @autoclosure () -> String?) {
        parts.log?.append([LoggedKey(digest: key, name: name())], cause: cause)
    }

    // MARK: Sweeps

    /// Who runs the collection that `record` tells of, by the numbers that this process sees; nil where it sees none such,
    /// as it may be in another container.
    package func visibleSweeper(_ record: SweepRecord) -> Int32? {
        parts.janitor.isHeld(by: record.process) ? record.process : nil
    }
}
