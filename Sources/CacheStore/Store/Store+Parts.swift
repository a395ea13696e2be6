// SPDX-License-Identifier: Apache-2.0

package import Platform

/// What a store passes on to the room for puts, the log and the record of sweeps.
extension Store {
    // MARK: Room

    /// Claims room, by the limits as they are now; see ``Room/claim(forLength:isWritten:now:_:)``.
    func claimRoom(
        forLength length: Int,
        isWritten: Bool = false,
        now: Timestamp,
        _ terms: inout RoomTerms
    ) throws(CacheError) -> RoomClaim? {
        if parts.configuration.isDue() { followConfiguration() }
        return try room.claim(forLength: length, isWritten: isWritten, now: now, &terms)
    }

    /// Bytes on disk that are to be reckoned with beside entries and objects.
    package var overhead: Int64 { parts.overhead }

    // MARK: Log

    /// Logs that one key was removed, if there is a log.
    func log(_ cause: LoggedRemoval.Cause, of key: Digest, name: @autoclosure () -> String?) {
        parts.log?.append([LoggedKey(digest: key, name: name())], cause: cause)
    }

    // MARK: Sweeps

    /// What the last sweep did; see ``SweepRecord/last(in:)``.
    package func lastSweep() -> SweepRecord? { SweepRecord.last(in: directory) }

    /// When anything was last written about sweeps; see ``SweepRecord/lastNote(in:)``.
    package func lastSweepNote() -> Timestamp? { SweepRecord.lastNote(in: directory) }

    /// Who runs the collection that `record` tells of, by the numbers that this process sees; nil where it sees none such,
    /// as it may be in another container.
    package func visibleSweeper(_ record: SweepRecord) -> Int32? {
        parts.janitor.isHeld(by: record.process) ? record.process : nil
    }
}
