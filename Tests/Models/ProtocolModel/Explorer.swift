// SPDX-License-Identifier: Apache-2.0

extension ProtocolModel {
    /// Checks properties in every state that a model can reach.
    struct Explorer {
        private let model: Model
        private let properties: [Property]
        private var cleanDisks: Set<State> = []
        private var taken = Steps()

        /// Sets of steps, as bit masks.
        struct Steps {
            private var writers: UInt64 = 0
            private var collector: UInt64 = 0

            mutating func insert(stepsOf state: State) {
                writers |= 1 &<< UInt64(state.writer0.step.rawValue)
                writers |= 1 &<< UInt64(state.writer1.step.rawValue)
                collector |= 1 &<< UInt64(state.collector.step.rawValue)
                collector |= 1 &<< UInt64(state.helper.step.rawValue)
            }

            mutating func formUnion(_ other: Steps) {
                writers |= other.writers
                collector |= other.collector
            }

            func contains(_ step: WriterStep) -> Bool { writers & (1 &<< UInt64(step.rawValue)) != 0 }
            func contains(_ step: CollectorStep) -> Bool { collector & (1 &<< UInt64(step.rawValue)) != 0 }
        }

        /// The result of an exploration.
        struct Outcome {
            let states: Int
            let ends: Int
            let violation: Property?
            let trace: [String]
            /// The steps that some process took in some state.
            let taken: Steps

            var description: String {
                guard let violation else { return "no violation in \(states) states" }
                return "\(violation) does not hold:\n" + trace.joined(separator: "\n")
            }
        }

        private init(_ model: Model, _ properties: [Property]) {
            self.model = model
            self.properties = properties
        }

        /// Visits all states until one violates a property.
        ///
        /// By default all properties are checked; `recordNamesObject` includes `returnedPutKeepsObject`.
        static func explore(
            _ model: Model,
            checking properties: [Property] = [
                .recordNamesObject, .returnedCallKeepsRecord, .gcLeavesNothing, .someoneGoesOn,
            ]
        ) -> Outcome {
            var explorer = Explorer(model, properties)
            return explorer.run()
        }

        private mutating func run() -> Outcome {
            var space = StateSpace(of: model)
            var ends = 0
            let found = space.visit { state, moves in
                taken.insert(stepsOf: state)
                if state.isTerminal { ends += 1 }
                return violation(in: state, moves)
            }
            return Outcome(
                states: space.states.count,
                ends: ends,
                violation: found?.finding,
                trace: found?.trace ?? [],
                taken: taken
            )
        }

        private mutating func violation(in state: State, _ moves: [Move]) -> Property? {
            for property in properties {
                let holds: Bool
                switch property {
                case .recordNamesObject: holds = model.recordsNameObjects(in: state, onlyReturned: false)
                case .returnedPutKeepsObject: holds = model.recordsNameObjects(in: state, onlyReturned: true)
                case .returnedCallKeepsRecord:
                    holds = !state.isTerminal || model.returnedCallsKeepRecords(in: state)
                case .gcLeavesNothing: holds = !state.isTerminal || gcCleansUp(after: state)
                case .someoneGoesOn: holds = state.isTerminal || someoneGoesOn(moves)
                }
                if !holds { return property }
            }
            return nil
        }

        private mutating func gcCleansUp(after state: State) -> Bool {
            guard cleanDisks.insert(model.disk(of: state)).inserted else { return true }
            return model.disksAfterCleanGC(of: state).allSatisfy { model.isClean($0) }
        }

        private func someoneGoesOn(_ moves: [Move]) -> Bool {
            moves.contains { $0.rawValue <= Move.gc.rawValue || $0 == .tick }
        }
    }
}

extension ProtocolModel.Model: ExploredModel {
    func line(for move: Move, from before: State, to after: State) -> String {
        let what =
            switch move {
            case .writer0: "writer 0: \(before.writer0.step)"
            case .writer1: "writer 1: \(before.writer1.step)"
            case .gc where before.helper.step != .ended:
                "gc: \(before.collector.step), \(before.helper.step) -> \(after.collector.step), \(after.helper.step)"
            case .gc: "gc: \(before.collector.step) \(before.collector.cursor)"
            case .nextPass, .crashOfWriter0, .crashOfWriter1, .crashOfGC, .tick, .clockSetBack: "\(move)"
            }
        return summary(of: before) == summary(of: after) ? what : "\(what)  => \(summary(of: after))"
    }

    /// Describes the disk.
    func summary(of state: State) -> String {
        func text(_ entry: Entry) -> String {
            if entry.isAbsent { return "absent" }
            return entry.record.isNone ? "no record" : "\(entry.record.content)"
        }
        return "A \(state.objectA), B \(state.objectB), k1 \(text(state.entry1)), k2 \(text(state.entry2))"
    }
}

extension ProtocolModel.Explorer {
    /// Whether no run returns to a state that it has visited; as the number of states is finite, every run then ends.
    static func everyRunEnds(_ model: ProtocolModel.Model) -> Bool {
        var isDone: [ProtocolModel.State: Bool] = [:]
        var pending = model.initialStates
        var moves: [ProtocolModel.Move] = []
        while let state = pending.last {
            switch isDone[state] {
            case nil:
                isDone[state] = false
                let count = pending.count
                model.addSuccessors(of: state, to: &pending, by: &moves)
                moves.removeAll(keepingCapacity: true)
                for next in pending[count...] where isDone[next] == false { return false }
            case false:
                isDone[state] = true
                pending.removeLast()
            case true:
                pending.removeLast()
            }
        }
        return true
    }
}
