// SPDX-License-Identifier: Apache-2.0

extension GenerationModel {
    /// The result of an exploration.
    struct Outcome {
        let states: Int
        /// Whether a read has returned a value that no linearizable history allows.
        let isBroken: Bool
        let trace: [String]

        var description: String {
            isBroken ? "not linearizable:\n" + trace.joined(separator: "\n") : "\(states) states"
        }

        /// Visits all states until a read has returned a wrong value.
        static func explore(_ model: Model) -> Outcome {
            var space = StateSpace(of: model)
            let found = space.visit { state, _ in state.isBroken ? true : nil }
            return Outcome(
                states: space.states.count,
                isBroken: found != nil,
                trace: found?.trace ?? []
            )
        }
    }
}

extension GenerationModel.Model {
    func line(for move: Move, from before: State, to after: State) -> String {
        let what =
            switch move {
            case .writer0: "writer 0 in process \(first.process): \(step(of: before.writer0))"
            case .writer1: "writer 1 in process \(second.process): \(step(of: before.writer1))"
            case .reader0: "reader 0 in process \(readers[0]): \(step(of: before.reader0, to: after.reader0))"
            case .reader1:
                "reader 1 in process \(readers.last ?? 0): \(step(of: before.reader1, to: after.reader1))"
            default: "\(move)"
            }
        return summary(of: before) == summary(of: after) ? what : "\(what)  => \(summary(of: after))"
    }

    private func step(of writer: Writer) -> String {
        let next = Int(writer.next)
        return writerSteps[next] == .lock ? "lock, \(writerSteps[next + 1])" : "\(writerSteps[next])"
    }

    private func step(of before: Reader, to after: Reader) -> String {
        after.step == .start ? "\(before.step), end" : "\(before.step), floor \(after.floor) \(after.copy)"
    }

    func summary(of state: State) -> String {
        func text(_ control: GenerationModel.Control) -> String {
            "\(control.phase) \(control.word.raw / 8)|\(control.word.writers)"
        }
        func text(_ slot: GenerationModel.Slot) -> String {
            let number = slot.isAbsence ? "absence since \(slot.number)" : "\(slot.number)"
            return slot.number == 0 ? "-" : "\(number) under \(slot.word.raw / 8)|\(slot.word.writers)"
        }
        let control =
            setting == .kept
            ? text(state.first) : "\(state.path): \(text(state.first)), \(text(state.second))"
        return "disk \(state.key1.disk), floor \(state.key1.floor), word \(control),"
            + " copies \(text(state.process0.slot1)), \(text(state.process1.slot1))"
    }
}
