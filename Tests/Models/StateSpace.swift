// SPDX-License-Identifier: Apache-2.0

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
