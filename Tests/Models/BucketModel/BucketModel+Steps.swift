// SPDX-License-Identifier: Apache-2.0

extension BucketModel.Model {
    typealias Actor = BucketModel.Actor
    typealias Call = BucketModel.Call
    typealias Word = BucketModel.Word

    /// Takes the next step of a process; returns false if it has to wait for the stripe.
    func advance(_ index: Int, in state: inout State) -> Bool {
        let call = programs[index][Int(state.actors[index].ended)]
        if !state.actors[index].isRunning {
            state.actors[index].isRunning = true
            if locksFirst(call) { state.actors[index].step = .lock }
            switch call {
            case .put: state.histories.beginWrite(BucketModel.record(ofProgram: index), by: index)
            case .remove, .evict, .displace: state.histories.beginWrite(0, by: index)
            case .get: state.histories.beginGet(by: index)
            case .move: break
            }
            return true
        }
        var actor = state.actors[index]
        if actor.step == .lock {
            if state.actors.contains(where: \.holdsStripe) { return false }
            actor.holdsStripe = true
            actor.step = mistake == .notSeenAgain && call == .put ? .exchange : .scan
            state.actors[index] = actor
            return true
        }
        if isEnded(call, index, &actor, &state) {
            switch call {
            case .put, .remove: state.histories.endWrite(by: index)
            // It may have found nothing to do.
            case .evict, .displace: state.histories.endWrite(by: index, mustBeDone: false)
            case .get: state.histories.endGet(actor.bytes, by: index)
            case .move: break
            }
            actor = Actor(ended: actor.ended + 1)
        }
        state.actors[index] = actor
        return true
    }

    private func locksFirst(_ call: Call) -> Bool {
        switch call {
        case .remove: mistake != .removedWithoutStripe
        case .evict: true
        case .move: mistake != .movedWithoutStripe
        case .put, .displace, .get: false
        }
    }

    /// Takes the next step of a call, and returns whether it was the last one.
    private func isEnded(_ call: Call, _ index: Int, _ actor: inout Actor, _ state: inout State) -> Bool {
        switch call {
        case .put: put(BucketModel.record(ofProgram: index), &actor, &state)
        case .remove: drop(&actor, &state, by: BucketModel.empty)
        case .displace: drop(&actor, &state, by: BucketModel.other)
        case .evict: release(&actor, &state, by: BucketModel.empty)
        case .move: release(&actor, &state, by: BucketModel.copy)
        case .get: get(&actor, &state)
        }
    }

    /// Whether the word names a record of the key; false for one whose pack is being written again.
    private func isOfKey(_ word: Word, _ state: State) -> Bool {
        word > BucketModel.other && !(word == BucketModel.initial && state.isReused)
    }

    /// Loads the next word of a scan, and returns true if it is wanted or the last one.
    private func scan(_ actor: inout Actor, _ state: State, for isWanted: (Word) -> Bool) -> Bool {
        let (position, word) = (actor.position, state.words[actor.position])
        if isWanted(word) {
            actor.chosen = position
            actor.expected = word
            return true
        }
        if actor.free == Actor.none || word == BucketModel.empty && actor.freeWord != BucketModel.empty {
            actor.free = position
            actor.freeWord = word
        }
        actor.position += 1
        return actor.position == BucketModel.Words.count
    }

    /// Starts the scan again.
    private func restart(_ actor: inout Actor) {
        actor = Actor(ended: actor.ended, isRunning: true, holdsStripe: actor.holdsStripe)
    }

    /// Exchanges the chosen word if it is as expected; otherwise starts again and returns false.
    private func exchange(_ word: Word, _ actor: inout Actor, _ state: inout State, isBlind: Bool = false)
        -> Bool
    {
        guard state.words[actor.chosen] == actor.expected || isBlind else {
            restart(&actor)
            return false
        }
        let isNeighbor = state.words[actor.chosen] == BucketModel.other
        if isNeighbor, actor.expected != BucketModel.other { state.isNeighborLost = true }
        state.words[actor.chosen] = word
        return true
    }

    private func put(_ mine: Word, _ actor: inout Actor, _ state: inout State) -> Bool {
        guard actor.step == .scan else {
            return exchange(mine, &actor, &state, isBlind: mistake == .storedBlindly)
        }
        guard scan(&actor, state, for: { isOfKey($0, state) }) else { return false }
        actor.step = .exchange
        if actor.chosen == Actor.none {
            actor.chosen = actor.free
            actor.expected = actor.freeWord
            if !actor.holdsStripe, mistake != .takenWithoutStripe {
                let (chosen, expected) = (actor.chosen, actor.expected)
                restart(&actor)
                actor.step = .lock
                if mistake == .notSeenAgain { (actor.chosen, actor.expected) = (chosen, expected) }
            }
        }
        return false
    }

    /// Replaces the word of the key, unless a put replaces it first: then that put counts as the later one.
    private func drop(_ actor: inout Actor, _ state: inout State, by word: Word) -> Bool {
        if actor.step == .scan {
            if scan(&actor, state, for: { isOfKey($0, state) }) { actor.step = .exchange }
            return actor.step == .exchange && actor.chosen == Actor.none
        }
        if state.words[actor.chosen] == actor.expected { state.words[actor.chosen] = word }
        return true
    }

    /// Replaces the word of the first record, and then writes its pack again.
    private func release(_ actor: inout Actor, _ state: inout State, by word: Word) -> Bool {
        if actor.step == .scan {
            guard scan(&actor, state, for: { $0 == BucketModel.initial }) else { return false }
            actor.step = actor.chosen == Actor.none ? .reuse : .exchange
            return false
        }
        if actor.step == .exchange {
            if exchange(word, &actor, &state, isBlind: mistake == .movedBlindly) { actor.step = .reuse }
            return false
        }
        state.isReused = true
        return true
    }

    private func get(_ actor: inout Actor, _ state: inout State) -> Bool {
        switch actor.step {
        case .scan:
            let isEnd = scan(&actor, state) { isOfKey($0, state) }
            if actor.chosen != Actor.none {
                actor.step = .copy
                return false
            }
            return isEnd
        case .copy:
            let isTorn = actor.expected == BucketModel.initial && state.isReused
            actor.bytes = isTorn ? BucketModel.torn : BucketModel.value(of: actor.expected)
            actor.step = .check
            return mistake == .copiedBlindly
        default:
            if state.words[actor.chosen] == actor.expected { return true }
            restart(&actor)
            return false
        }
    }
}
