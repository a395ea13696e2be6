// SPDX-License-Identifier: Apache-2.0

/// A system of finitely many states, whose every step is listed.
protocol ExploredModel {
    associatedtype State: Hashable
    associatedtype Move

    var initialStates: [State] { get }

    /// Adds the states that one step leads to, and in the same order who made it.
    func addSuccessors(of state: State, to next: inout [State], by moves: inout [Move])

    /// What a step did, for a counterexample.
    func line(for move: Move, from before: State, to after: State) -> String

    /// What a counterexample tells of the state that it starts in.
    func summary(of state: State) -> String
}

/// All states that a model can reach, nearest first, so that a counterexample is a shortest one.
struct StateSpace<Model: ExploredModel> {
    private let model: Model
    private var parents: [Int] = []
    private var known: Set<Model.State> = []
    /// What was reached so far, in the order of its distance from an initial state.
    private(set) var states: [Model.State] = []

    init(of model: Model) {
        self.model = model
    }

    /// Visits all states until `judge`, which is also told the moves that are possible, finds something in one.
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

    /// The way from an initial state: a line for each step.
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
