// SPDX-License-Identifier: Apache-2.0

package import Platform

/// What a process has of a directory's control file.
package enum ControlCondition: Sendable {
    /// It is mapped, as the other processes have it.
    case shared
    /// The same; its words are in memory, as the file system is none whose files may be mapped for writing.
    case sharedInMemory
    /// It is mapped for reading only.
    case readOnly
    /// There is none, or it could not be mapped.
    case missing
    /// Other processes use one in memory that this process can't see.
    case unreachable
    /// The file system can't have one.
    case impossible
}

extension Store {
    /// The generation table, by which values may be held in memory.
    ///
    /// nil where there is no control file now: then a value in memory is good only if its record, read
    /// again, is the same.
    package var generations: Generations? {
        control.words == nil ? nil : Generations(control: control)
    }

    /// Whether there is a generation table now; counts no references.
    package var hasGenerations: Bool { control.words != nil }

    /// Whether the control file is still the one at its path; true where there can be none.
    ///
    /// One system call.
    package func isControlCurrent() throws(StoreError) -> Bool {
        try control.isCurrent()
    }

    /// Maps the control file that is there now, and makes or completes it where need be.
    ///
    /// Where that can't be done the store goes on without, which is counted.
    package func renewControl() {
        do throws(StoreError) {
            try control.prepare(entryStripes)
        } catch {
            counters.add(.controlFailure)
        }
    }

    /// Goes on with the control file that the path names now, where that is not the one mapped, and makes or
    /// completes it where need be.
    ///
    /// To be called about once a second: who has one mapped that was removed sees nothing of what is written by
    /// those who have its successor. One system call where nothing has changed.
    package func followControl() {
        do throws(StoreError) {
            let isCurrent = try control.isCurrent()
            if isCurrent, control.isSettled { return }
            // Also where no other can be made: whoever has it mapped is told that it counts no more.
            if !isCurrent { control.file?.supersede() }
            try control.prepare(entryStripes)
        } catch {
            counters.add(.controlFailure)
        }
    }

    /// What all processes counted; nil where there is no control file.
    package var cumulative: CumulativeCounts? { control.words.map { CumulativeCounts(in: $0) } }

    /// Since when; nil where there is no control file, or one made before that was noted.
    package var cumulativeSince: Timestamp? { control.countedSince }

    /// Sets what all processes counted to 0; false where there is no control file that can be written.
    ///
    /// What another counts at this very moment may be lost.
    @discardableResult
    package func resetCumulative(now: Timestamp = .now) -> Bool {
        control.resetCounters(now: now)
    }

    /// What this process has of the control file.
    package var controlCondition: ControlCondition {
        if control.writableWords != nil {
            return control.file?.isInMemory ?? false ? .sharedInMemory : .shared
        }
        if control.words != nil { return .readOnly }
        if control.isImpossible { return .impossible }
        do throws(StoreError) {
            return try control.look(isWritable: directory.isWritable) == .unreachable
                ? .unreachable : .missing
        } catch {
            return .missing
        }
    }

    /// Who runs the collection that `record` tells of, by the numbers that this process sees; nil where it sees none such,
    /// as it may be in another container.
    package func visibleSweeper(_ record: SweepRecord) -> Int32? {
        holdsJanitorLock(record.process) ? record.process : nil
    }

    /// Whether the process of that number, as this one sees it, holds the `janitor` lock; false where that can't be told.
    func holdsJanitorLock(_ process: Int32) -> Bool {
        var inode: UInt64?
        bestEffort { () throws(Errno) in
            inode = try directory.locks.status(of: StoreLayout.janitorLock).identity.inode
        }
        return inode.map { ProcFiles.lockHolders(inode: $0).contains(process) } ?? false
    }

    /// What the cache takes on disk, as added up since the last sweep; nil where there is no control file.
    package var usage: StoreUsage? { control.usage }

    /// Runs `publish`, which changes the entry of `key`, as a writer in its word of the generation table.
    ///
    /// `isRemoval`: no entry is there afterwards.
    /// The caller holds the entry's stripe. No system call where the control file is mapped.
    func writing<Result>(
        _ key: Digest,
        isRemoval: Bool = false,
        _ publish: () throws(StoreError) -> Result
    ) throws(StoreError) -> (result: Result, generation: Generation?) {
        guard let writing = try control.beginWriting(key, publishes: !isRemoval) else {
            return (try publish(), nil)
        }
        do throws(StoreError) {
            let result = try publish()
            return (result, control.endWriting(writing))
        } catch {
            // What failed may have been published all the same.
            control.endWriting(writing)
            throw error
        }
    }

    /// Makes every value that any process holds in memory be read from disk again.
    package func raiseAllGenerations() throws(StoreError) {
        try control.raiseAll()
    }
}
