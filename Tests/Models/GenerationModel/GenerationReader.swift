// SPDX-License-Identifier: Apache-2.0

extension GenerationModel {
    /// The next step of a reader.
    enum ReaderStep: UInt8, CaseIterable {
        /// Load the slot from memory; without a copy, continue on disk.
        case start
        /// Load the phase of the control file and check that it is ready.
        case checkPhase
        /// Load the word; if it is the slot's, the read ends with the slot's value.
        case checkWord
        /// Load the phase of the control file again, which decides whether a copy may be held.
        case loadPhase
        /// Load the word under which a copy will be held.
        case loadWord
        /// getxattr; if the copy may not be held, the read ends here.
        case readRecord
        /// Put the copy into the memory tier; the read ends.
        case insert
        /// The process has died.
        case dead

        /// Returns the steps from memory to disk.
        static func sequence(_ setting: Setting, _ change: Change?) -> [ReaderStep] {
            let steps: [ReaderStep] =
                switch change {
                case .wordAfterRecord:
                    [.checkPhase, .checkWord, .loadPhase, .readRecord, .loadWord, .insert]
                case .phaseAfterRecord:
                    [.checkPhase, .checkWord, .loadWord, .readRecord, .loadPhase, .insert]
                case .absenceWordAfterRecord:
                    [.checkPhase, .checkWord, .loadPhase, .readRecord, .loadWord, .insert]
                case .phaseAfterWord:
                    [.checkWord, .checkPhase, .loadWord, .loadPhase, .readRecord, .insert]
                case .wordsClosed, .wordsClosedAndRaised:
                    [.checkWord, .loadWord, .loadPhase, .readRecord, .insert]
                default: [.checkPhase, .checkWord, .loadPhase, .loadWord, .readRecord, .insert]
                }
            return setting == .kept ? steps.filter { $0 != .checkPhase && $0 != .loadPhase } : steps
        }
    }
}

extension GenerationModel.Model {
    /// Takes the next step of a reader; returns false if it is dead.
    func advance(reader index: UInt8, in state: inout State) -> Bool {
        var me = state[reader: index]
        guard me.step != .dead else { return false }
        let process = readers[Int(index)]
        switch me.step {
        case .dead: return false
        case .start:
            me.floor = state.key1.floor
            me.copy = state[process: process].slot1
            if me.copy.number == 0 {
                goToDisk(&me)
            } else if change == .hitWithoutCheck || (change == .absenceWithoutCheck && me.copy.isAbsence) {
                end(&me, in: &state)
            } else {
                me.step = readerSteps[0]
                me.file = state[process: process].file
            }
        case .checkPhase:
            if readerSteps[0] == .checkPhase { me.file = state[process: process].file }
            goOn(&me, isValid: state[me.file].phase == .ready, in: &state)
        case .checkWord:
            goOn(&me, isValid: state[me.file].word == me.copy.word, in: &state)
        case .loadPhase, .loadWord, .readRecord:
            if me.file == .none { me.file = state[process: process].file }
            readDisk(&me, in: &state)
        case .insert:
            state[process: process].slot1 = me.copy
            end(&me, in: &state)
        }
        state[reader: index] = me
        return true
    }

    /// Continues after a check of a copy: with the next check, with the end after the last one, or on disk.
    private func goOn(_ me: inout Reader, isValid: Bool, in state: inout State) {
        let next = readerStepAfter[Int(me.step.rawValue)]
        if !isValid {
            goToDisk(&me)
        } else if next == firstStepOnDisk {
            end(&me, in: &state)
        } else {
            me.step = next
        }
    }

    private func goToDisk(_ me: inout Reader) {
        me.copy = .init()
        me.file = .none
        me.mayHold = true
        me.step = firstStepOnDisk
    }

    /// Whether only absences are held, so that a violation is due to them.
    private var holdsAbsencesOnly: Bool {
        switch change {
        case .absenceWordAfterRecord, .absenceHeldDespiteWriter, .absenceHeldWhileForming: true
        default: false
        }
    }

    /// Reads the record, after the phase and the word are loaded.
    private func readDisk(_ me: inout Reader, in state: inout State) {
        switch me.step {
        case .loadPhase:
            let isReady = state[me.file].phase == .ready
            let mayHold = isReady || change == .copyHeldWhileForming || change == .absenceHeldWhileForming
            if me.file == .none || !mayHold { me.mayHold = false }
        case .loadWord:
            me.copy.word = state[me.file].word
            let isAlone = me.copy.word.writers == 0
            let mayHold = isAlone || change == .copyHeldDespiteWriter || change == .absenceHeldDespiteWriter
            if me.file == .none || !mayHold { me.mayHold = false }
        default:
            me.copy.number = state.key1.published
            me.copy.isAbsence = state.key1.disk == 0
            if me.copy.isAbsence ? !keepsAbsences : holdsAbsencesOnly { me.mayHold = false }
        }
        me.step = readerStepAfter[Int(me.step.rawValue)]
        if !me.mayHold {
            // From now on only the record matters.
            me.copy.word = .start
            me.file = .none
            if me.copy.number != 0 {
                end(&me, in: &state)
            } else {
                me.step = .readRecord
            }
        }
    }

    /// Ends the read: checks its result against the floor at its beginning, and raises the floor.
    private func end(_ me: inout Reader, in state: inout State) {
        if me.copy.number < me.floor { state.isBroken = true }
        state.key1.floor = max(state.key1.floor, me.copy.number)
        me = .init()
    }
}
