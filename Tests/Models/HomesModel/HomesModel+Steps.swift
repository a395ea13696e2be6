// SPDX-License-Identifier: Apache-2.0

extension HomesModel.Model {
    typealias Actor = HomesModel.Actor

    /// Takes the next step of a process; returns false if it has to wait for a lock.
    func advance(_ index: Int, in state: inout State) -> Bool {
        let call = programs[index][Int(state.actors[index].ended)]
        var actor = state.actors[index]
        let outcome =
            switch call {
            case .packPut(let value): packPut(value, index, &actor, &state)
            case .filePut(let value): filePut(value, index, &actor, &state)
            case .remove: remove(index, &actor, &state)
            case .update: update(index, &actor, &state)
            case .evict: evict(index, &actor, &state)
            case .move: move(&actor, &state)
            case .unpack: unpack(&actor, &state)
            case .lose: lose(index, &state)
            case .get, .load: get(index, &actor, &state, keeps: call == .load)
            case .hit: hit(index, &actor, &state)
            }
        switch outcome {
        case .waits: return false
        case .next: actor.step += 1
        case .jumps(let step): actor.step = step
        case .ends: actor = Actor(ended: actor.ended + 1, copy: actor.copy)
        }
        state.actors[index] = actor
        return true
    }

    private enum Outcome { case waits, next, jumps(UInt8), ends }

    // MARK: Parts

    private func lock(_ stripe: HomesModel.Stripe, _ actor: inout Actor, _ state: State) -> Outcome {
        let holds = state.actors.map(\.holds)
        if holds.contains(.exclusive) || stripe == .exclusive && holds.contains(.shared) { return .waits }
        actor.holds = stripe
        return .next
    }

    private func beginChange(_ actor: inout Actor, _ state: inout State) {
        actor.isWriter = true
        state.generation.writers += 1
    }

    private func endChange(_ actor: inout Actor, _ state: inout State) {
        actor.isWriter = false
        state.generation.writers -= 1
        state.generation.version += 1
    }

    private func append(_ value: UInt8, _ actor: inout Actor, _ state: inout State) {
        state.records.append(value)
        actor.record = UInt8(state.records.count)
    }

    private func value(of word: UInt8, _ state: State) -> UInt8 { state.records[Int(word) - 1] }

    /// Replaces the word that the process has loaded; returns false if it has changed.
    private func exchange(_ word: UInt8, _ actor: Actor, _ state: inout State, isBlind: Bool = false) -> Bool
    {
        guard state.word == actor.word || isBlind else { return false }
        state.word = word
        return true
    }

    // MARK: Writers

    private func packPut(_ value: UInt8, _ index: Int, _ actor: inout Actor, _ state: inout State) -> Outcome
    {
        switch actor.step {
        case 0:
            state.histories.beginWrite(value, by: index)
            append(value, &actor, &state)
            return .next
        case 1:
            actor.word = state.word
            return actor.word == 0 ? .jumps(4) : .next
        case 2:
            let isReplaced = exchange(actor.record, actor, &state, isBlind: mistake == .wordReplacedBlindly)
            return isReplaced ? .next : .jumps(1)
        case 3:
            state.histories.endWrite(by: index)
            return .ends
        case 4: return mistake == .wordTakenWithoutStripe ? .next : lock(.exclusive, &actor, state)
        case 5:
            if mistake != .generationStays { beginChange(&actor, &state) }
            return .next
        case 6:
            actor.word = state.word
            if mistake == .fileDeletedFirst { state.file = 0 }
            return .next
        case 7: return exchange(actor.record, actor, &state) ? .next : .jumps(6)
        case 8:
            if mistake != .fileStays { state.file = 0 }
            return .next
        case 9:
            if mistake != .generationStays { endChange(&actor, &state) }
            return .next
        default:
            state.histories.endWrite(by: index)
            return .ends
        }
    }

    private func filePut(_ value: UInt8, _ index: Int, _ actor: inout Actor, _ state: inout State) -> Outcome
    {
        func clearWord() {
            let isCleared = mistake == .wordStays || exchange(0, actor, &state)
            if isCleared || mistake == .keptDespiteOverwrite { actor.value = value }
        }
        switch actor.step {
        case 0:
            if mistake != .putWithoutStripe, case .waits = lock(.shared, &actor, state) { return .waits }
            state.histories.beginWrite(value, by: index)
        case 1:
            actor.generation = state.generation
            beginChange(&actor, &state)
        case 2: actor.word = state.word
        case 3: if mistake == .wordClearedFirst { clearWord() } else { state.file = value }
        case 4: if mistake == .wordClearedFirst { state.file = value } else { clearWord() }
        case 5:
            let before = HomesModel.Generation(writers: 1, version: actor.generation.version)
            let isAlone = actor.generation.writers == 0 && state.generation == before
            endChange(&actor, &state)
            actor.copy = nil
            if isAlone, actor.value != 0 {
                actor.copy = .init(value: value, word: 0, version: state.generation.version)
            }
        default:
            state.histories.endWrite(by: index)
            return .ends
        }
        return .next
    }

    private func remove(_ index: Int, _ actor: inout Actor, _ state: inout State) -> Outcome {
        switch actor.step {
        case 0:
            if case .waits = lock(.shared, &actor, state) { return .waits }
            state.histories.beginWrite(0, by: index)
            actor.word = state.word
        case 1: beginChange(&actor, &state)
        case 2: state.file = 0
        case 3: _ = exchange(0, actor, &state)
        case 4: endChange(&actor, &state)
        default:
            state.histories.endWrite(by: index)
            return .ends
        }
        return .next
    }

    private func update(_ index: Int, _ actor: inout Actor, _ state: inout State) -> Outcome {
        switch actor.step {
        case 0: return lock(mistake == .updateShared ? .shared : .exclusive, &actor, state)
        case 1: beginChange(&actor, &state)
        case 2: actor.word = state.word
        case 3:
            actor.value = actor.word == 0 ? state.file : value(of: actor.word, state)
            if actor.value == 0 { return .jumps(6) }
            append(actor.value + 5, &actor, &state)
        case 4:
            let isDone = exchange(actor.record, actor, &state, isBlind: mistake == .updateStored)
            if isDone { state.histories.exchange(actor.value, by: actor.value + 5) }
            if !isDone { return .jumps(2) }
        case 5: state.file = 0
        case 6: endChange(&actor, &state)
        default: return .ends
        }
        return .next
    }

    // MARK: Janitor

    private func evict(_ index: Int, _ actor: inout Actor, _ state: inout State) -> Outcome {
        switch actor.step {
        case 0:
            if state.word == 0 { return .ends }
            actor.word = state.word
        case 1:
            if case .waits = lock(.exclusive, &actor, state) { return .waits }
            state.histories.beginWrite(0, by: index)
        case 2:
            if state.word != actor.word { return .jumps(6) }
            if mistake != .generationStays { beginChange(&actor, &state) }
        case 3:
            if mistake == .evictionClearsFirst {
                _ = exchange(0, actor, &state)
            } else if mistake != .evictionLeavesFile {
                state.file = 0
            }
        case 4: if mistake == .evictionClearsFirst { state.file = 0 } else { _ = exchange(0, actor, &state) }
        case 5: if mistake != .generationStays { endChange(&actor, &state) }
        default:
            state.histories.endWrite(by: index, mustBeDone: false)
            return .ends
        }
        return .next
    }

    private func move(_ actor: inout Actor, _ state: inout State) -> Outcome {
        switch actor.step {
        case 0: return mistake == .moveWithoutStripe ? .next : lock(.exclusive, &actor, state)
        case 1:
            if state.word == 0 { return .ends }
            actor.word = state.word
            append(value(of: state.word, state), &actor, &state)
            return .next
        default:
            _ = exchange(actor.record, actor, &state, isBlind: mistake == .moveStored)
            return .ends
        }
    }

    private func unpack(_ actor: inout Actor, _ state: inout State) -> Outcome {
        switch actor.step {
        case 0: return lock(.exclusive, &actor, state)
        case 1: beginChange(&actor, &state)
        case 2:
            actor.word = state.word
            if state.word == 0 { return .jumps(5) }
        case 3: state.file = value(of: actor.word, state)
        case 4: if !exchange(0, actor, &state, isBlind: mistake == .unpackedBlindly) { return .jumps(2) }
        case 5: endChange(&actor, &state)
        default: return .ends
        }
        return .next
    }

    private func lose(_ index: Int, _ state: inout State) -> Outcome {
        if state.actors.contains(where: { $0.step > 0 || $0.isKilled }) { return .waits }
        state.histories.beginWrite(0, by: index)
        state.word = 0
        state.generation.version += 1
        state.histories.endWrite(by: index, mustBeDone: false)
        return .ends
    }

    // MARK: Readers

    private func get(_ index: Int, _ actor: inout Actor, _ state: inout State, keeps: Bool) -> Outcome {
        switch actor.step {
        case 0: state.histories.beginGet(by: index)
        case 1: actor.generation = state.generation
        case 2:
            actor.word = state.word
            if state.word != 0 {
                actor.value = value(of: state.word, state)
                return .jumps(6)
            }
        case 3: actor.value = state.file
        case 4: if state.word != 0, mistake != .wordNotSeenAgain { return .jumps(1) }
        case 5:
            // The value may have gone from the file to a pack and back to a file.
            let isMissed = actor.value == 0 && mistake != .missedAtOnce
            if isMissed, actor.generation != state.generation { return .jumps(1) }
        default:
            if mistake == .generationLoadedLate { actor.generation = state.generation }
            actor.copy = nil
            if keeps, actor.value != 0 {
                let word = mistake == .memoryByGenerationAlone ? 0 : actor.word
                actor.copy = .init(value: actor.value, word: word, version: actor.generation.version)
            }
            state.histories.endGet(actor.value, by: index)
            return .ends
        }
        return .next
    }

    /// Returns the value in memory, if it is current: a value from a pack by the word, a value from a file by the generation.
    private func hit(_ index: Int, _ actor: inout Actor, _ state: inout State) -> Outcome {
        guard let copy = actor.copy else { return .ends }
        if actor.step == 0 {
            state.histories.beginGet(by: index)
            return .next
        }
        let isCurrent =
            copy.word != 0
            ? copy.word == state.word
            : state.generation == HomesModel.Generation(writers: 0, version: copy.version)
        if isCurrent {
            state.histories.endGet(copy.value, by: index)
        } else {
            state.histories.cancelGet(by: index)
        }
        return .ends
    }
}
