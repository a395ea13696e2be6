// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A system with a finite number of states, which lists all steps from each state.
protocol ExploredModel {
    associatedtype State: Hashable
    associatedtype Move

    var initialStates: [State] { get }

    /// Adds the states that one step can lead to, and the moves that lead there in the same order.
    func addSuccessors(of state: State, to next: inout [State], by moves: inout [Move])

    /// Describes a step in a counterexample.
    func line(for move: Move, from before: State, to after: State) -> String

    /// Describes the initial state of a counterexample.
    func summary(of state: State) -> String
}

/// A state without references and padding, which is compared and hashed as bytes: hashing field by field would take most
/// of an exploration.
protocol FlatState: Hashable, BitwiseCopyable {}

extension FlatState {
    static func == (one: Self, other: Self) -> Bool {
        withUnsafeBytes(of: one) { one in
            withUnsafeBytes(of: other) { other in
                guard let first = one.baseAddress, let second = other.baseAddress else { return true }
                return memcmp(first, second, one.count) == 0
            }
        }
    }

    func hash(into hasher: inout Hasher) {
        precondition(MemoryLayout<Self>.alignment == 1, "there may be padding")
        withUnsafeBytes(of: self) { hasher.combine(bytes: $0) }
    }
}

/// All states that a model can reach, in breadth-first order, so that a counterexample is a shortest one.
struct StateSpace<Model: ExploredModel> {
    private let model: Model
    private var parents: [Int] = []
    private var known: Set<Model.State> = []
    /// The states reached so far, in order of their distance from an initial state.
    private(set) var states: [Model.State] = []

    init(of model: Model) {
        self.model = model
    }

    /// Visits all states until `isBroken` is true of one.
    ///
    /// Each model calls it from this module, which is optimized: called from a test, it would not be specialized, and
    /// would take ten times as long.
    static func explore(_ model: Model, until isBroken: (Model.State) -> Bool) -> Exploration<Model.State> {
        var space = StateSpace(of: model)
        let found = space.visit { state, _ in isBroken(state) ? true : nil }
        return Exploration(states: space.states, trace: found?.trace)
    }

    /// Visits all states until `judge`, which also gets the possible moves, returns a finding for one.
    mutating func visit<Finding>(
        _ judge: (Model.State, [Model.Move]) -> Finding?
    ) -> (finding: Finding, trace: [String])? {
        for state in model.initialStates { add(state, from: -1) }
        var index = 0
        var next: [Model.State] = []
        var moves: [Model.Move] = []
        while index < states.count {
            let state = states[index]
            next.removeAll(keepingCapacity: true)
            moves.removeAll(keepingCapacity: true)
            model.addSuccessors(of: state, to: &next, by: &moves)
            if let finding = judge(state, moves) { return (finding, trace(to: index)) }
            for successor in next { add(successor, from: index) }
            index += 1
        }
        return nil
    }

    private mutating func add(_ state: Model.State, from parent: Int) {
        guard known.insert(state).inserted else { return }
        states.append(state)
        parents.append(parent)
    }

    /// Returns the path from an initial state, with a line for each step.
    private func trace(to index: Int) -> [String] {
        let parent = parents[index]
        guard parent >= 0 else { return ["start: \(model.summary(of: states[index]))"] }
        var next: [Model.State] = []
        var moves: [Model.Move] = []
        model.addSuccessors(of: states[parent], to: &next, by: &moves)
        let step = zip(next, moves).first { $0.0 == states[index] }.map { state, move in
            model.line(for: move, from: states[parent], to: state)
        }
        return trace(to: parent) + [step ?? "?"]
    }
}

/// The states that were reached, and the path to the one that breaks a promise, if there is one.
struct Exploration<State> {
    let states: [State]
    let trace: [String]?
}
