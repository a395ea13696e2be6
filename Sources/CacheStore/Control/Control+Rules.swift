// SPDX-License-Identifier: Apache-2.0

import Platform

/// The outcome of putting a rule in force.
package enum Enactment: Sendable {
    case done
    /// There are too many rules: a collection must retire some first.
    case full
    /// The caller must change each value individually: there is no control file, the control file does not cover all
    /// creation times, or a rule can't express the selection.
    case impossible
}

/// A step of putting a rule in force, for tests that kill the process there.
package enum RuleStep: String, Sendable, CaseIterable {
    /// The process has the `format` lock.
    case locked = "rule-locked"
    /// The rules file contains the rule, but no process applies it yet.
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
/// A rule is in force once the control file's ``ControlWord/rulesVersion`` is its number. So it comes into force in one
/// step, however many values it applies to. Before that step, the rule is written to the rules file, and all values in the
/// memory of processes are made invalid: the control file is `forming`, so no process keeps the values that it reads, and
/// every generation is raised, so no value that was kept before is valid. So every later lookup reads the record, and a
/// reader loads the version before it reads the record.
///
/// If the process is killed before that step, the rule never comes into force: the next change of the rules drops it. If it
/// is killed while the control file is `forming`, the file is completed like any other forming file.
extension Control {
    // MARK: Reading

    /// Returns the rules that apply to records that are read from now on.
    ///
    /// It must be called before the record is read: a rule is retired when it no longer applies to any value. Three loads
    /// if there are no rules. Without a control file, each call reads the rules file, even if the directory can't have a
    /// control file: the rules may have come into force through an earlier control file of the directory.
    func rulesInForce() throws(CacheError) -> RulesInForce {
        try describing("read", rulesPath) { () throws(Errno) -> RulesInForce in
            if let words, let rules = try rulesInForce(by: words) { return rules }
            return try FollowedRules.rulesOnDisk(in: directory.root)
        }
    }

    /// How many times a reader reads the rules file again because the version in the control file has changed.
    ///
    /// Each retry means that another process has changed the rules in the microseconds in between.
    private static let ruleAttempts = 16

    /// Returns the rules in force; nil if another control file replaces the one with these words.
    private func rulesInForce(by words: MappedWords) throws(Errno) -> RulesInForce? {
        var version = words.load(.rulesVersion)
        for _ in 0..<Self.ruleAttempts {
            // Check this after loading the version: if another control file replaces this one only now, no rule of the new
            // file was in force when the version was loaded.
            if words.areSuperseded { return nil }
            if version == 0 { return .nothing }
            let rules = try followedRules.rules(since: version, of: words.address, in: directory.root)
            // A later rules file may lack a rule because another rule covers it, and that other rule may not have been in
            // force when the version was loaded.
            let present = words.load(.rulesVersion)
            if present == version { return rules }
            version = present
        }
        return nil
    }

    /// Returns whether this process knows the rules in force.
    ///
    /// Returns false if there are rules whose file is missing, damaged, or not readable by this process.
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
    /// Two loads.
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
    /// Two loads, and an atomic operation for one of the puts in each millisecond.
    func noteCreated(_ created: Timestamp) {
        noteCreated(created, isKnown: false)
    }

    /// Records the latest creation time of all entries after a sweep has checked each of them.
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

    /// How long to wait for another process that changes the rules or creates the control file.
    private static let rulePatience: Duration = .milliseconds(700)

    /// Puts a rule in force that applies to all values of a selection that exist now, by the caller's clock.
    ///
    /// The rule does not apply to values that are stored after this call has returned, whatever the clock says then. It may
    /// apply to values that are stored during the call. About 30 system calls and one pass over the generations, however
    /// many values there are.
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

    /// Removes all values if there are rules whose file is missing or damaged: a rule may have removed some of the values.
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

    /// Runs `change` under the `format` lock with the rules of the rules file and the words of the present control file;
    /// returns `otherwise` if there is no control file.
    ///
    /// No process replaces the control file meanwhile. A damaged or missing rules file counts as one rule that removes
    /// everything, which is not written yet.
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

    /// Runs `change` under the `format` lock with the rules of the rules file, and writes them if it returns true; for
    /// directories that can't have a control file.
    ///
    /// A damaged file is replaced by one rule that removes everything. The file stays even if it has no rules left: a
    /// process that still uses a control file would treat a missing rules file as lost.
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
    /// The file need not be synced to the medium: if a power cut loses it but keeps the control file, the rules can't be
    /// read, and all values are removed.
    private func write(_ rules: RemovalRules) throws(CacheError) {
        try describing("write", rulesPath) { () throws(Errno) in
            let file = try TemporaryFile(in: directory, mode: FileMode.file)
            try file.file.writeAll(rules.bytes.span)
            try file.rename(to: directory.root, StoreLayout.rules)
        }
    }

    private func putInForce(_ rules: RemovalRules, _ words: MappedWords, _ atStep: (RuleStep) -> Void) {
        let (ready, forming) = (ControlState.ready.rawValue, ControlState.forming.rawValue)
        // A file that was already forming becomes ready when its creator, or another process, completes it.
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
