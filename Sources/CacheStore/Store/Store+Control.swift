// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The state that the processes of a cache share through memory, and in `config.json`.
extension Store {
    // MARK: Generations

    /// Returns the current generation of `key`; nil if there is no control file.
    ///
    /// The caller must read the generation before the record. If there is no control file, a value in memory is valid
    /// only if its record, read again, is the same.
    package func generation(of key: Digest) -> Generation? { control.generation(of: key) }

    /// Whether there is a generation table at the moment; counts no references.
    package var hasGenerations: Bool { control.words != nil }

    /// Returns whether a value that was stored in memory under `generation` is still current; counts no references.
    ///
    /// Returns nil if there is no control file, so that the record on disk must be read.
    package func isCurrent(_ generation: Generation?) -> Bool? { control.isCurrent(generation) }

    /// Returns the result of ``Control/isLatest(_:)``.
    package func isLatest(_ generation: Generation?) -> Bool { control.isLatest(generation) }

    /// Returns whether the word at `index` of the file mapped at `mapping` still has the value `word`, so that no process
    /// has started to write since; if so, counts a hit in memory for all processes.
    ///
    /// It makes the same loads as ``isCurrent(_:)``, another one, and an atomic addition.
    package func countsHit(_ word: UInt64, at index: Int, of mapping: UInt) -> Bool {
        guard control.holds(word, at: index, of: mapping) else { return false }
        counters.addForAll(.memoryHit)
        return true
    }

    // MARK: Control file

    /// Maps the current control file, and creates or completes it if necessary.
    ///
    /// If that fails, the store continues without a control file and counts the failure.
    package func renewControl() {
        do throws(CacheError) {
            try control.prepare(passEntryBarrier)
        } catch {
            counters.add(.controlFailure)
        }
    }

    /// Switches to the control file that the path names now if it is not the mapped one, and creates or completes it if
    /// necessary.
    ///
    /// Call this about once a second: a process that has a removed control file mapped does not see the writes of
    /// processes that use its successor. One system call if nothing has changed.
    package func followControl() {
        do throws(CacheError) {
            let isCurrent = try control.isCurrent()
            if isCurrent, control.isSettled { return }
            // Even if no other file can be created: processes that have this file mapped must see that it is no longer in
            // use.
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

    /// The latest creation time of any value since the control file was created; nil if there is no control file.
    package var latestCreated: Timestamp? { control.latestCreated }

    // MARK: Configuration

    /// The limits and defaults that belong to the directory, as this process last read them.
    package var configuration: DirectoryConfiguration { followed.present }

    /// The maximum age of a value in nanoseconds; `Int64.max` if there is no such limit.
    ///
    /// One load.
    package var longestAge: Int64 { followed.longestAge }

    /// Why the current configuration file can't be used; nil if it can.
    package var configurationFailure: CacheError? { followed.failure }

    /// Whether the directory had a configuration file that could be used at the last check.
    package var isConfigured: Bool { followed.hasFile }

    /// Checks whether the configuration has changed; must be called about once a second.
    ///
    /// Two system calls if it is unchanged.
    package func followConfiguration() {
        FileSizeLimit.follow()
        followed.look()
        if configuration.limits.sharesMemory == false, directory.capabilities.sharedMapping == .memory,
            !control.isImpossible
        {
            control.giveUp()
        }
        // Record accesses as precisely as the current limits require.
        let limits = configuration.limits
        let horizon = limits.areBounding ? control.expectedHorizon : nil
        accesses.adjust(to: [horizon, limits.maximumIdleTime].compactMap { $0 }.min())
    }
}
