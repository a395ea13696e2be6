// SPDX-License-Identifier: Apache-2.0

import Platform

/// The outcome of putting a rule in force.
package enum Enactment: Sendable {
    case done
    /// There are too many rules: a collection has to take some off.
    case full
    /// Each value has to be changed by itself: there is no control file, or it does not have all the times of creation, or the
    /// selection is not fit for a rule.
    case impossible
}

/// How far a rule is: for tests of a process that ends there.
package enum RuleStep: String, Sendable, CaseIterable {
    /// It has the `format` lock.
    case locked = "rule-locked"
    /// The file has it, and no process applies it.
    case written = "rule-written"
    /// Nothing may be held in memory.
    case closed = "rule-closed"
    /// Values that were held in memory are not valid any more.
    case raised = "rule-raised"
    /// All processes apply it.
    case inForce = "rule-in-force"
}

/// The rules of the directory, in force for all processes.
///
/// A rule is in force from the moment when the control file's ``ControlWord/rulesVersion`` has its number: one step,
/// however many values it is meant for. Before that step the file of rules has the rule, and no process uses a value in its
/// memory any more: the control file is `forming` meanwhile, so no process holds values that it reads, and every generation is
/// raised, so no held value is valid. So every later look reads the record, and a reader loads the word before the record.
///
/// Killed before that step, the rule never is in force: the next change of the rules drops it. Killed in between, the file
/// is made ready again like any other that is forming.
extension Control {
    // MARK: Reading

    /// The rules by which records that are read from now on are to be judged.
    ///
    /// To be asked before the record is read: a rule goes when nothing is left that it is meant for. Three loads where
    /// there are none. Without a control file the file of rules is read each time, also if there can be none: the rules may
    /// have come into force by a control file that the directory had before.
    func rulesInForce() throws(CacheError) -> RulesInForce {
        try describing("read", rulesPath) { () throws(Errno) -> RulesInForce in
            if let words, let rules = try rulesInForce(by: words) { return rules }
            return try FollowedRules.rulesOnDisk(in: directory.root)
        }
    }

    /// How often a reader looks at the file again because the word has changed.
    ///
    /// Each time another process has changed the rules in the microseconds between.
    private static let ruleAttempts = 16

    /// nil if another file takes the place of the one with these words.
    private func rulesInForce(by words: MappedWords) throws(Errno) -> RulesInForce? {
        var version = words.load(.rulesVersion)
        for _ in 0..<Self.ruleAttempts {
            // After the word: if another file takes its place only now, no rule of that file was in force then.
            if words.areSuperseded { return nil }
            if version == 0 { return .nothing }
            let rules = try followedRules.rules(since: version, of: words.address, in: directory.root)
            // A later file may lack a rule that one covers which was not in force yet when the word was looked at.
            let present = words.load(.rulesVersion)
            if present == version { return rules }
            version = present
        }
        return nil
    }

    /// False where their file is gone, damaged, or not for this process to read.
    package func rulesAreKnown() throws(CacheError) -> Bool {
        do throws(CacheError) {
            if case .unknown = try rulesInForce() { return false }
            return true
        } catch {
            guard error.concernsOneFile else { throw error }
            return false
        }
    }

    /// The number of the latest rules in force; 0 for none.
    ///
    /// Two loads.
    var rulesVersion: UInt64 { words?.load(.rulesVersion) ?? 0 }

    private var rulesPath: String { "\(directory.path)/\(StoreLayout.rules)" }

    // MARK: Writing values

    /// Whether a rule in force may take a value of this time of creation for one that was there before it.
    ///
    /// One load.
    func mayBeMeant(_ created: Timestamp) -> Bool {
        guard let latest = words?.load(.latestRule) else { return false }
        return created.milliseconds <= Int64(clamping: latest)
    }

    /// The latest time of creation that was noted; nil if there is no control file.
    var latestCreated: Timestamp? {
        words.map { Timestamp(milliseconds: Int64(clamping: $0.load(.latestCreated) >> 1)) }
    }

    /// Sees to it that later rules are meant for values of this time of creation.
    ///
    /// One load, and an atomic step for one put of those in a millisecond.
    func noteCreated(_ created: Timestamp) {
        noteCreated(created, isKnown: false)
    }

    /// The same for the latest of all entries, which were looked at.
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

    /// Puts a rule in force that is meant for all values of a selection that are there now, by the caller's clock.
    ///
    /// Values that are stored after this has returned are not meant, whatever the clock says then; those that are stored meanwhile
    /// may be. Some 30 system calls, and a pass over the generations, however many values there are.
    func enact(
        _ effect: RemovalRule.Effect,
        _ selection: KeySelection,
        now: Timestamp,
        atStep: (RuleStep) -> Void = { _ in }
    ) throws(CacheError) -> Enactment {
        guard selection.isFitForRule else { return .impossible }
        return try changingRules(.impossible) { (rules, words, clock) throws(CacheError) -> Enactment in
            atStep(.locked)
            // Not all entries that are there may be known to be older than that.
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

    /// Has everything go that is there, if there are rules whose file is gone or damaged: some of it may have been removed.
    func restoreRules(now: Timestamp) throws(CacheError) {
        if isImpossible { return try changingRulesOnDisk { _ in false } }
        try changingRules(()) { (rules, words, _) throws(CacheError) -> Void in
            let version = words.load(.rulesVersion)
            guard version != 0, rules.version != version else { return }
            try write(rules)
            putInForce(rules, words) { _ in }
        }
    }

    /// Takes off rules that nothing is left to be done for.
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

    /// Runs `change` with the rules of the file under the `format` lock, and with the words of the control file at the
    /// path, which nobody replaces meanwhile; gives `otherwise` where there is none.
    ///
    /// A damaged file counts as one rule by which everything goes, not written yet.
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
    /// A damaged file is replaced by one rule that removes everything. The file stays when it has no rules any more: a process
    /// that has not given up its control file yet would take it for lost.
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

    /// No value that is there was created later, by whatever clock.
    private func latestTime(_ words: MappedWords, _ now: Timestamp) -> Timestamp {
        let created = Int64(clamping: words.load(.latestCreated) >> 1)
        let rule = Int64(clamping: words.load(.latestRule))
        return max(now.wholeMilliseconds, Timestamp(milliseconds: max(created, rule)))
    }

    /// Puts another file in its place, in one step.
    ///
    /// It need not be on the medium: should a power cut take it and leave the control file, there are rules that nobody can
    /// read, and everything goes.
    private func write(_ rules: RemovalRules) throws(CacheError) {
        try describing("write", rulesPath) { () throws(Errno) in
            let file = try TemporaryFile(in: directory, mode: FileMode.file)
            try file.file.writeAll(rules.bytes.span)
            try file.rename(to: directory.root, StoreLayout.rules)
        }
    }

    private func putInForce(_ rules: RemovalRules, _ words: MappedWords, _ atStep: (RuleStep) -> Void) {
        let (ready, forming) = (ControlState.ready.rawValue, ControlState.forming.rawValue)
        // One that is forming by itself becomes ready by who completes it.
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
