// SPDX-License-Identifier: Apache-2.0

extension BucketModel.Model {
    typealias Actor = BucketModel.Actor
    typealias Call = BucketModel.Call
    typealias Word = BucketModel.Word

    /// Takes the next step of a process.
    func advance(_ index: Int, in state: inout State) {
        let call = programs[index][Int(state.actors[index].ended)]
        if !state.actors[index].isRunning {
            state.actors[index].isRunning = true
            switch call {
            case .put: state.histories.beginWrite(BucketModel.record(ofProgram: index), by: index)
            case .remove, .evict, .displace: state.histories.beginWrite(0, by: index)
            case .get: state.histories.beginGet(by: index)
            case .move: break
            }
            return
        }
        var actor = state.actors[index]
        let isEnded =
            switch call {
            case .put: put(BucketModel.record(ofProgram: index), &actor, &state)
            case .remove: remove(&actor, &state)
            case .evict: evict(&actor, &state)
            case .move: move(&actor, &state)
            case .displace: displace(&actor, &state)
            case .get: get(&actor, &state)
            }
        if isEnded {
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
    }

    /// Whether the word names a record of the key; false for one whose pack is being written again.
    private func isOfKey(_ word: Word, _ state: State) -> Bool {
        word > BucketModel.other && !(word == BucketModel.initial && state.isReused)
    }

    /// Loads the next word of a scan from the lowest on, and returns true after the last one.
    private func scan(_ actor: inout Actor, _ state: State, for isWanted: (Word) -> Bool) -> Bool {
        let (position, word) = (actor.position, state.words[actor.position])
        actor.seen[position] = word
        if isWanted(word) {
            if actor.chosen == Actor.none || mistake == .highestReplaced {
                actor.chosen = position
                actor.expected = word
            }
        } else if word == BucketModel.empty {
            if actor.free == Actor.none || actor.seen[actor.free] != BucketModel.empty {
                actor.free = position
            }
        } else if actor.free == Actor.none {
            actor.free = position
        }
        actor.position += 1
        return actor.position == BucketModel.Words.count
    }

    /// Starts the scan again.
    private func restart(_ actor: inout Actor) {
        actor = Actor(ended: actor.ended, isRunning: true)
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

    /// Clears the next word of the key above the chosen one; returns true if there is none left.
    private func clearAbove(_ actor: inout Actor, _ state: inout State) -> Bool {
        actor.position -= 1
        if actor.position <= actor.chosen { return true }
        if isOfKey(state.words[actor.position], state) { state.words[actor.position] = BucketModel.empty }
        return actor.position == actor.chosen + 1
    }

    private func beginAbove(_ actor: inout Actor) {
        actor.step = .above
        actor.position = BucketModel.Words.count
    }

    private func isTop(_ actor: Actor) -> Bool { actor.chosen + 1 == BucketModel.Words.count }

    private func put(_ mine: Word, _ actor: inout Actor, _ state: inout State) -> Bool {
        guard actor.step == .scan else {
            return exchange(mine, &actor, &state, isBlind: mistake == .storedBlindly)
        }
        guard scan(&actor, state, for: { isOfKey($0, state) }) else { return false }
        actor.step = .exchange
        if actor.chosen == Actor.none || mistake == .alwaysTaken {
            actor.chosen = actor.free
            actor.expected = actor.seen[actor.free]
        }
        return false
    }

    /// Notes the words of the key, then clears them from the highest down, unless they have changed.
    ///
    /// In between it deletes the key's file (`HomesModel`).
    private func remove(_ actor: inout Actor, _ state: inout State) -> Bool {
        let last = BucketModel.Words.count - 1
        if actor.step == .scan {
            if scan(&actor, state, for: { isOfKey($0, state) }) {
                actor.step = .above
                actor.position = 0
            }
            return false
        }
        let isUpwards = mistake == .lowestRemovedFirst || mistake == .lowestRemovedOnly
        let index = isUpwards ? actor.position : last - actor.position
        let isNoted = isOfKey(actor.seen[index], state)
        if isNoted, state.words[index] == actor.seen[index] { state.words[index] = BucketModel.empty }
        actor.position += 1
        return actor.position > last || isNoted && mistake == .lowestRemovedOnly
    }

    private func evict(_ actor: inout Actor, _ state: inout State) -> Bool {
        switch actor.step {
        case .scan:
            guard scan(&actor, state, for: { $0 == BucketModel.initial }) else { return false }
            if actor.chosen == Actor.none {
                actor.step = .reuse
            } else if isTop(actor) || mistake == .evictedAlone {
                actor.step = .exchange
            } else {
                beginAbove(&actor)
            }
        case .above:
            if clearAbove(&actor, &state) { actor.step = .exchange }
        case .exchange:
            if exchange(BucketModel.empty, &actor, &state) { actor.step = .reuse }
        default:
            state.isReused = true
            return true
        }
        return false
    }

    private func move(_ actor: inout Actor, _ state: inout State) -> Bool {
        switch actor.step {
        case .scan:
            guard scan(&actor, state, for: { $0 == BucketModel.initial }) else { return false }
            actor.step = actor.chosen == Actor.none ? .reuse : .exchange
        case .exchange:
            if exchange(BucketModel.copy, &actor, &state, isBlind: mistake == .movedBlindly) {
                actor.step = .reuse
            }
        default:
            state.isReused = true
            return true
        }
        return false
    }

    private func displace(_ actor: inout Actor, _ state: inout State) -> Bool {
        switch actor.step {
        case .scan:
            guard scan(&actor, state, for: { isOfKey($0, state) }) else { return false }
            if actor.chosen == Actor.none { return true }
            if isTop(actor) || mistake == .displacedAlone {
                actor.step = .exchange
            } else {
                beginAbove(&actor)
            }
            return false
        case .above:
            if clearAbove(&actor, &state) { actor.step = .exchange }
            return false
        default: return exchange(BucketModel.other, &actor, &state)
        }
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
