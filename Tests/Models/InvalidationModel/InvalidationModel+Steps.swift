// SPDX-License-Identifier: Apache-2.0

extension InvalidationModel.Model {
    /// Takes the next step of a put.
    ///
    /// A put takes its creation time, checks whether it must be alone, locks the stripe and adds itself to the generation,
    /// reads the number of the rules in force, writes the entry, and ends.
    func advancePut(by writer: Int, at clock: UInt8, in state: inout State) -> Bool {
        var me = state.writers[writer]
        let other = state.writers[1 - writer]
        switch me.step {
        case .idle:
            guard state.puts < InvalidationModel.mostPuts else { return false }
            state.puts += 1
            me.entry = InvalidationModel.Entry(put: state.puts, created: clock)
            // A rule that was left unfinished may come into force with the next one.
            me.isUndisturbed = state.maker.step == .idle && state.made == state.inForce
            me.step = .stamped
        case .stamped:
            // A concurrent put may have read the rules before the latest one was made.
            me.isAlone = state.inForce != 0 && other.isWriting && mistake != .besideAnother
            me.step = .looked
        case .looked:
            guard !other.isWriting || !me.isAlone && !other.isAlone else { return false }
            // One more writer.
            state.raiseGeneration()
            me.isLatest = !other.isWriting
            me.step = .locked
        case .locked:
            me.number = state.inForce
            me.step = .numbered
        case .numbered:
            let isOld = me.number != 0 && me.entry.created <= state.latestRule
            if isOld, mistake != .numberNotNoted { me.entry.number = me.number }
            state.latestCreated = max(state.latestCreated, me.entry.created)
            state.disk = me.entry
            me.step = .written
        case .written:
            // Ends; the value is kept if no other writer has raised the word, the file is ready and the rules are the same.
            state.raiseGeneration()
            let isOfSameRules = state.inForce == me.number || mistake == .keptDespiteRule
            if me.isLatest, state.isReady || mistake == .readinessUnchecked, isOfSameRules {
                state.memory = me.entry
            }
            state.ended |= 1 << (me.entry.put - 1)
            state.mustFind = state.mustFind || me.isUndisturbed
            me = InvalidationModel.Writer()
        }
        state.writers[writer] = me
        return true
    }

    /// The steps of a rule's maker in order.
    private var ruleSteps: [InvalidationModel.RuleStep] {
        switch mistake {
        case .wordBeforeFile: [.close, .raise, .word, .file, .ready]
        case .neverClosed: [.file, .raise, .word]
        case .raisedAfterwards: [.file, .word, .raise]
        case .neverRaised: [.file, .close, .word, .ready]
        case .healedUnraised: [.file, .close, .word, .raise, .ready]
        default: [.file, .close, .raise, .word, .ready]
        }
    }

    func advanceRule(at clock: UInt8, in state: inout State) -> Bool {
        var me = state.maker
        switch me.step {
        case .idle:
            guard max(state.made, state.inForce) < mostRules else { return false }
            me.meant = state.ended
            for writer in state.writers.indices { state.writers[writer].isUndisturbed = false }
            state.mustFind = false
            state.reader.mustFind = false
        case .file:
            let known = mistake == .latestIgnored ? 0 : max(state.latestCreated, state.latestRule)
            state.latest[Int(state.made)] = max(clock, known)
            state.made += 1
        case .close: state.isReady = false
        case .raise: state.raiseGeneration()
        case .word:
            let count = mistake == .wordBeforeFile ? state.made + 1 : state.made
            state.latestRule = (0..<Int(count)).map { state.latest[$0] }.max() ?? 0
            state.inForce = count
            state.gone |= me.meant
        case .ready: state.isReady = true
        }
        let steps = ruleSteps
        let place = me.step == .idle ? 0 : (steps.firstIndex(of: me.step) ?? 0) + 1
        state.maker = me
        state.maker.step = place < steps.count ? steps[place] : .idle
        if state.maker.step == .idle { state.maker = InvalidationModel.Maker() }
        return true
    }

    /// Takes the next step of a read.
    ///
    /// A read checks the readiness and the word of the value in memory; without such a value, it reads the word, the
    /// readiness, the rules and the record.
    func advanceRead(in state: inout State) -> Bool {
        var me = state.reader
        switch me.step {
        case .idle:
            me = InvalidationModel.Reader(ended: state.ended, gone: state.gone, mustFind: state.mustFind)
            let mayLook = state.isReady || mistake == .readinessUnchecked
            me.step = state.memory.put != 0 && mayLook ? .memory : .word
        case .memory:
            if state.memory.put != 0 {
                end(&me, state.memory.put, in: &state)
            } else {
                me.step = .word
            }
        case .word:
            me.isLatest = true
            // During a put no value is kept.
            me.mayKeep = !state.isWriting
            me.step = .state
        case .state:
            if !state.isReady, mistake != .readinessUnchecked { me.mayKeep = false }
            if mistake == .rulesAfterRecord { me.entry = state.disk }
            me.step = .rules
        case .rules:
            me.rules = state.rules(upTo: mistake == .countedByFile ? state.made : state.inForce)
            if mistake == .rulesAfterRecord {
                judge(&me, me.entry, in: &state)
            } else {
                me.step = .record
            }
        case .record: judge(&me, state.disk, in: &state)
        }
        state.reader = me
        return true
    }

    private func judge(
        _ me: inout InvalidationModel.Reader,
        _ entry: InvalidationModel.Entry,
        in state: inout State
    ) {
        let isThere = entry.put != 0 && !state.isMeant(entry, by: me.rules)
        if isThere, me.mayKeep {
            state.memory = me.isLatest ? entry : InvalidationModel.Entry()
        }
        end(&me, isThere ? entry.put : 0, in: &state)
    }

    private func end(_ me: inout InvalidationModel.Reader, _ put: UInt8, in state: inout State) {
        if put == 0 {
            // All values that existed when it began are gone forever.
            if state.reader.mustFind { state.isBroken = true }
            state.gone |= me.ended
        } else if me.gone & (1 << (put - 1)) != 0 {
            state.isBroken = true
        }
        me = InvalidationModel.Reader()
    }

    /// Takes the next step of a collection.
    ///
    /// A collection notes the rules, waits for active puts, deletes the entry if a rule applies to it, and retires the noted
    /// rules.
    func advanceCollection(in state: inout State) -> Bool {
        var me = state.collector
        let isWriting = state.isWriting
        switch me.step {
        case .idle:
            me.rules = state.rules(upTo: state.inForce)
            guard me.rules != 0 else { return false }
            if mistake == .retiredBefore { state.retired |= me.rules }
            me.step = .begun
        case .begun:
            guard !isWriting || mistake == .noBarrier else { return false }
            me.step = .passed
        case .passed:
            // Under the entry's stripe lock.
            guard !isWriting || mistake == .noBarrier else { return false }
            if state.disk.put != 0, state.isMeant(state.disk, by: me.rules) { state.disk = .init() }
            me.step = .looked
        case .looked:
            // Under the lock of the rules' maker.
            guard state.maker.step == .idle else { return false }
            state.retired |= mistake == .retiredLater ? state.rules(upTo: state.inForce) : me.rules
            // Unfinished rules are retired, too: they must not come into force by the file's new version.
            if mistake == .retiredIntoForce {
                state.inForce = state.made
            } else {
                state.retired |= state.rules(upTo: state.made) & ~state.rules(upTo: state.inForce)
            }
            me = InvalidationModel.Collector()
        }
        state.collector = me
        return true
    }
}
