// SPDX-License-Identifier: Apache-2.0

package import Platform

/// What the processes of a cache tell each other through memory, and in `config.json`.
extension Store {
    // MARK: Generations

    /// The generation of `key`, to be read before its record; nil if there is no control file now.
    ///
    /// Without one, a value in memory is valid only if its record, read again, is the same.
    package func generation(of key: Digest) -> Generation? { control.generation(of: key) }

    /// Whether there is a generation table now; counts no references.
    package var hasGenerations: Bool { control.words != nil }

    /// Whether a value that is held by `generation` is still the one that counts; counts no references.
    ///
    /// nil: there is no control file, so that the record on disk has to be looked at.
    package func isCurrent(_ generation: Generation?) -> Bool? { control.isCurrent(generation) }

    /// See ``Control/isLatest(_:)``.
    package func isLatest(_ generation: Generation?) -> Bool { control.isLatest(generation) }

    /// Whether no process has begun to write since this was the word at `index`, in the file that is mapped at `mapping`;
    /// if so, counts a hit in memory for all processes.
    ///
    /// As ``isCurrent(_:)``, by the same loads; and one atomic addition.
    package func countsHit(_ word: UInt64, at index: Int, of mapping: UInt) -> Bool {
        guard control.holds(word, at: index, of: mapping) else { return false }
        counters.addForAll(.memoryHit)
        return true
    }

    // MARK: Control file

    /// Maps the present control file, and makes or completes it if necessary.
    ///
    /// If that fails, the store continues without one, and counts the failure.
    package func renewControl() {
        do throws(CacheError) {
            try control.prepare(passEntryBarrier)
        } catch {
            counters.add(.controlFailure)
        }
    }

    /// Continues with the control file that the path names now, if that is not the mapped one, and makes or completes it if
    /// necessary.
    ///
    /// To be called about once a second: a process that has a removed control file mapped does not see the writes of processes
    /// that have its successor. One system call if nothing has changed.
    package func followControl() {
        do throws(CacheError) {
            let isCurrent = try control.isCurrent()
            if isCurrent, control.isSettled { return }
            // Even if no other can be made: processes that have it mapped must know that it is not in use any more.
            if !isCurrent { control.file?.supersede() }
            try control.prepare(passEntryBarrier)
        } catch {
            counters.add(.controlFailure)
        }
    }

    private func passEntryBarrier(patience: (Int) -> Duration?) throws(CacheError) -> Set<Int>? {
        try entries.stripes.barrier(patience: patience)
    }

    /// The counts of all processes; nil if there is no control file.
    package var cumulative: CumulativeCounts? { control.words.map { CumulativeCounts(in: $0) } }

    /// The latest time of creation of any value since the control file was made; nil if there is no control file.
    package var latestCreated: Timestamp? { control.latestCreated }

    // MARK: Configuration

    /// The limits and defaults that belong to the directory, as this process saw them last.
    package var configuration: DirectoryConfiguration { parts.configuration.present }

    /// How long ago a value may have been stored, in nanoseconds; `Int64.max` if there is no such limit.
    ///
    /// One load.
    package var longestAge: Int64 { parts.configuration.longestAge }

    /// Why the configuration that is there now can't be used; nil: it can.
    package var configurationFailure: CacheError? { parts.configuration.failure }

    /// Looks whether there is another configuration: to be called about once a second.
    ///
    /// One system call if there is none.
    package func followConfiguration() {
        FileSizeLimit.follow()
        parts.configuration.look()
        if configuration.limits.sharesMemory == false, directory.capabilities.sharedMapping == .memory,
            !control.isImpossible
        {
            control.giveUp()
        }
        // Accesses are noted as exactly as the present limits ask for.
        let limits = configuration.limits
        let horizon = limits.areBounding ? control.expectedHorizon : nil
        accesses.adjust(to: [horizon, limits.maximumIdleTime].compactMap { $0 }.min())
    }

    /// Changes the configuration, for all processes; they follow within a second.
    ///
    /// `change` is called again where the disk was full.
    ///
    /// - Throws: ``CacheError/Code/badConfiguration`` where the one that is there can't be read: it is left as it is.
    package func configure(
        _ change: (inout DirectoryConfiguration) throws(CacheError) -> Void
    ) throws(CacheError) {
        // A limit may be what the full disk lacks.
        try room.makingSpace(forLength: 0, now: .now) { _ throws(CacheError) in
            try parts.configuration.update { (configuration) throws(CacheError) in
                let before = configuration.limits
                try change(&configuration)
                // Its filter lacks the keys that were stored without it.
                if before.sharesMemory == false, configuration.limits.sharesMemory != false {
                    try control.discard()
                }
            }
        }
        followConfiguration()
    }
}
