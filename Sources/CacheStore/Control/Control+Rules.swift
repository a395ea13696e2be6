// SPDX-License-Identifier: Apache-2.0

import Platform

/// The outcome of putting a rule in force.
package enum Enactment: Sendable {
    case done
    /// There are too many rules: a collection has to retire some.
    case full
    /// Each value has to be changed individually: there is no control file, it does not cover all creation times, or the
    /// selection is not suitable for a rule.
    case impossible
}

/// A step of putting a rule in force, for tests of a process that is killed there.
package enum RuleStep: String, Sendable, CaseIterable {
    /// The process has the `format` lock.
    case locked = "rule-locked"
    /// The file contains the rule, and no process applies it.
    case written = "rule-written"
    /// No process may hold values in memory.
    case closed = "rule-closed"
    /// Values that were held in memory are no longer valid.
    case raised = "rule-raised"
    /// All processes apply the rule.
    case inForce = "rule-in-force"
}

/// The rules of the directory, in force for all processes.
///
/// A rule is in force once the control file's ``ControlWord/rulesVersion`` is its number: one step, however many values it
/// applies to. Before that step the rule is in the rules file, and no process uses a value in its memory any more: the
/// control file is `forming` meanwhile, so no process holds values that it reads, and every generation is raised, so no held
/// value is valid. So every later lookup reads the record, and a reader loads the word before the record.
///
/// If the process is killed before that step, the rule is never in force: the next change of the rules drops it. If it is
/// killed while the control file is forming, the file is made ready again like any other forming file.
extension Control {
    // MARK: Reading

    /// Returns the rules that apply to records that are read from now on.
    ///
    /// It must be called before the record is read: a rule is retired when no value is left that it applies to. Three loads
    /// if there are no rules. Without a control file the rules file is read each time, even if there can be no control file:
    /// the rules may have come into force by an earlier control file of the directory.
    func rulesInForce() throws(CacheError) -> RulesInForce {
        try describing("read", rulesPath) { () throws(Errno) -> RulesInForce in
            if let words, let rules = try rulesInForce(by: words) { return rules }
            return try FollowedRules.rulesOnDisk(in: directory.root)
        }
    }

    /// How often a reader reads the file again because the word has changed.
    ///
    /// Each time, another process has changed the rules in the microseconds in between.
    private static let ruleAttempts = 16

    /// Returns the rules in force; nil if another file replaces the one with these words.
    private func rulesInForce(by words: MappedWords) throws(Errno) -> RulesInForce? {
        var version = words.load(.rulesVersion)
        for _ in 0..<Self.ruleAttempts {
            // After the word: if another file replaces this one only now, no rule of the new file was in force then.
            if words.areSuperseded { return nil }
            if version == 0 { return .nothing }
            let rules = try followedRules.rules(since: version, of: words.address, in: directory.root)
            // A later file may lack a rule that is covered by another one that was not in force yet when the word was
            // loaded.
            let present = words.load(.rulesVersion)
            if present == version { return rules }
            version = present
        }
        return nil
    }

    /// Returns false if the rules file is missing, damaged, or not readable by this process.
    package func rulesAreKnown() throws(CacheError) -> Bool {
        do throws(CacheError) {
            if case .unknown = try rulesInForce() { return false }
            return true
        } catch {
            guard error.concernsOneFile else { throw error }
            return false
        }
    }

    /// The number of the latest rule in force; 0 if there is none.
    ///
    /// Two loads.
    var rulesVersion: UInt64 { words?.load(.rulesVersion) ?? 0 }

    private var rulesPath: String { "\(directory.path)/\(StoreLayout.rules)" }

    // MARK: Writing values

    /// Returns whether a rule in force may mistake a new value with this creation time for an older one.
    ///
    /// One load.
    func mayBeMeant(_ created: Timestamp) -> Bool {
        guard let latest = words?.load(.latestRule) else { return false }
        return created.milliseconds <= Int64(clamping: latest)
    }

    /// The latest creation time that was recorded; nil if there is no control file.
    var latestCreated: Timestamp? {
        words.map { Timestamp(milliseconds: Int64(clamping: $0.load(.latestCreated) >> 1)) }
    }

    /// Records a creation time, so that later rules also apply to values with this time.
    ///
    /// One load, and an atomic step for one of the puts in a millisecond.
    func noteCreated(_ created: Timestamp) {
        noteCreated(created, isKnown: false)
    }

    /// Records the latest creation time of all entries, each of which was checked.
    func noteAllCreated(_ latest: Timestamp) {
        noteCreated(latest, isKnown: true)
    }

    private func noteCreated(_ created: Timestamp, isKnown: Bool) {
        guard let words = writableWords else { return }
        let milliseconds = UInt64(created.milliseconds)
        while true {
            let word = words.load(.latestCreated)
            if word >> 1 >= milliseconds, !isKnown || word & 1 == 1 { return }
            let latest = max(word >> 1, milliseconds) << 1 | (isKnown ? 1 : word & 1)
            if words.replace(word, by: latest, at: .latestCreated) { return }
        }
    }

    // MARK: Rules

    /// How long to wait for another process that changes the rules or makes the control file.
    private static let rulePatience: Duration = .milliseconds(700)

    /// Puts a rule in force that applies to all values of a selection that exist now, by the caller's clock.
    ///
    /// It does not apply to values that are stored after this has returned, whatever the clock says then; it may apply to
    /// values that are stored meanwhile. About 30 system calls and one pass over the generations, however many values there
    /// are.
    func enact(
        _ effect: RemovalRule.Effect,
        _ selection: KeySelection,
        now: Timestamp,
        atStep: (RuleStep) -> Void = { _ in }
    ) throws(CacheError) -> Enactment {
        guard selection.isFitForRule else { return .impossible }
        return try changingRules(.impossible) { (rules, words, clock) throws(CacheError) -> Enactment in
            atStep(.locked)
            // Otherwise the recorded creation time may not cover all existing entries.
            guard words.load(.latestCreated) & 1 == 1 else { return .impossible }
            let inForce = words.load(.rulesVersion)
            rules.dropSuperfluous(upTo: inForce)
            guard rules.rules.count < RemovalRules.most || rules.mergeTwo(upTo: inForce, now: now) else {
                return .full
            }
            let latest = latestTime(words, now)
            rules.add(effect, selection, latest: latest, at: now, clock: clock)
            try write(rules)
            atStep(.written)
            putInForce(rules, words, atStep)
            return .done
        }
    }

    /// Removes all values if there are rules whose file is missing or damaged: some of the values may have been removed by a
    /// rule.
    func restoreRules(now: Timestamp) throws(CacheError) {
        if isImpossible { return try changingRulesOnDisk { _ in false } }
        try changingRules(()) { (rules, words, _) throws(CacheError) -> Void in
            let version = words.load(.rulesVersion)
            guard version != 0, rules.version != version else { return }
            try write(rules)
            putInForce(rules, words) { _ in }
        }
    }

    /// Removes rules that no longer apply to any value.
    func retire(_ over: [RemovalRule]) throws(CacheError) {
        if isImpossible {
            return try changingRulesOnDisk { rules in
                let before = rules.rules.count
                rules.retire(over, clock: .now)
                return rules.rules.count < before
            }
        }
        try changingRules(()) { (rules, words, clock) throws(CacheError) -> Void in
            let before = rules.rules.count
            rules.retire(over, clock: clock)
            guard rules.rules.count < before else { return }
            try write(rules)
            words.store(rules.rules.isEmpty ? 0 : rules.version, at: .rulesVersion)
            words.store(UInt64(rules.latest.milliseconds), at: .latestRule)
        }
    }

    /// Runs `change` under the `format` lock with the rules of the file and the words of the control file at the path, or
    /// returns `otherwise` if there is no control file.
    ///
    /// No process replaces the control file meanwhile. A damaged rules file counts as one rule that removes everything, not
    /// yet written.
    private func changingRules<Outcome>(
        _ otherwise: Outcome,
        _ change: (inout RemovalRules, MappedWords, Timestamp) throws(CacheError) -> Outcome
    ) throws(CacheError) -> Outcome {
        guard !isImpossible, directory.isWritable, try mapPresent(isWritable: true) else { return otherwise }
        guard let lock = try directory.lock(StoreLayout.formatLock, patience: Self.rulePatience) else {
            throw CacheError(.busy, to: "change the rules of", path: directory.path, cause: .timedOut)
        }
        guard try mapPresent(isWritable: true), let words = countingWords else { return otherwise }
        var rules = try presentRules(words)
        let outcome = try change(&rules, words, .now)
        lock.release()
        return outcome
    }

    /// Runs `change` with the rules of the file under the `format` lock if there can be no control file, and writes them if
    /// it returns true.
    ///
    /// A damaged file is replaced by one rule that removes everything. The file stays when it has no rules any more: a
    /// process that has not given up its control file yet would treat a missing file as lost.
    private func changingRulesOnDisk(_ change: (inout RemovalRules) -> Bool) throws(CacheError) {
        guard directory.isWritable else { return }
        guard let lock = try directory.lock(StoreLayout.formatLock, patience: Self.rulePatience) else {
            throw CacheError(.busy, to: "change the rules of", path: directory.path, cause: .timedOut)
        }
        let finding = try describing("read", rulesPath) { () throws(Errno) in
            try RuleFile.read(in: directory.root)
        }
        switch finding {
        case .missing: break
        case .found(var rules): if change(&rules) { try write(rules) }
        case .damaged:
            let now = Timestamp.now
            var rules = RemovalRules(version: UInt64(now.milliseconds))
            rules.add(.remove, .all, latest: now.wholeMilliseconds, at: now, clock: now)
            try write(rules)
        }
        lock.release()
    }

    private func presentRules(_ words: MappedWords) throws(CacheError) -> RemovalRules {
        let version = words.load(.rulesVersion)
        let finding = try describing("read", rulesPath) { () throws(Errno) in
            try RuleFile.read(in: directory.root)
        }
        if case .found(var rules) = finding, rules.version >= version {
            rules.dropUnenforced(above: version)
            return rules
        }
        var rules = RemovalRules(version: version)
        if version != 0 {
            let now = Timestamp.now
            rules.add(.remove, .all, latest: latestTime(words, now), at: now, clock: now)
        }
        return rules
    }

    /// Returns a time after which no existing value was created, by any clock.
    private func latestTime(_ words: MappedWords, _ now: Timestamp) -> Timestamp {
        let created = Int64(clamping: words.load(.latestCreated) >> 1)
        let rule = Int64(clamping: words.load(.latestRule))
        return max(now.wholeMilliseconds, Timestamp(milliseconds: max(created, rule)))
    }

    /// Replaces the rules file atomically.
    ///
    /// It need not be synced to the medium: if a power cut loses it but keeps the control file, the rules can't be read, and
    /// all values are removed.
    private func write(_ rules: RemovalRules) throws(CacheError) {
        try describing("write", rulesPath) { () throws(Errno) in
            let file = try TemporaryFile(in: directory, mode: FileMode.file)
            try file.file.writeAll(rules.bytes.span)
            try file.rename(to: directory.root, StoreLayout.rules)
        }
    }

    private func putInForce(_ rules: RemovalRules, _ words: MappedWords, _ atStep: (RuleStep) -> Void) {
        let (ready, forming) = (ControlState.ready.rawValue, ControlState.forming.rawValue)
        // A file that was already forming becomes ready when its maker, or another process, completes it.
        let wasReady = words.replace(ready, by: forming, at: .state)
        atStep(.closed)
        raiseAll(words)
        atStep(.raised)
        words.store(UInt64(rules.latest.milliseconds), at: .latestRule)
        words.store(rules.version, at: .rulesVersion)
        atStep(.inForce)
        if wasReady { _ = words.replace(forming, by: ready, at: .state) }
    }
}
