// SPDX-License-Identifier: Apache-2.0

import Platform

extension Store {
    /// The generation table, by which values may be held in memory.
    ///
    /// nil where there is no control file now: then a value in memory is good only if its record, read
    /// again, is the same.
    package var generations: Generations? {
        control.words == nil ? nil : Generations(control: control)
    }

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

    /// What all processes counted; nil where there is no control file.
    package var cumulative: CumulativeCounts? { control.words.map { CumulativeCounts(in: $0) } }

    /// Sets what all processes counted to 0.
    ///
    /// What another counts at this very moment may be lost.
    package func resetCumulative() {
        control.resetCounters()
    }

    /// What the cache takes on disk, as added up since the last sweep; nil where there is no control file.
    package var usage: StoreUsage? { control.usage }

    /// What the last sweeps left word of; nil where there is no control file that can be written.
    package var sweepMarks: SweepMarks? { control.writableWords.map { SweepMarks(in: $0) } }

    /// Runs `publish`, which changes the entry of `key` and says whether it did, as a writer in its word of
    /// the generation table.
    ///
    /// The caller holds the entry's stripe. No system call where the control file is mapped.
    func writing(
        _ key: Digest,
        _ publish: () throws(StoreError) -> Bool
    ) throws(StoreError) -> (isChanged: Bool, generation: Generation?) {
        guard let writing = try control.beginWriting(key) else { return (try publish(), nil) }
        // What failed may have been published all the same.
        var isChanged = true
        do throws(StoreError) {
            isChanged = try publish()
        } catch {
            control.endWriting(writing, isChanged: true)
            throw error
        }
        return (isChanged, control.endWriting(writing, isChanged: isChanged))
    }
}
