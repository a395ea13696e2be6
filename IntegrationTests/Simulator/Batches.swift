// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform

/// Runs many seeds, each hundred or so in a separate simulator process.
///
/// The threads of killed simulated processes never end, so they would accumulate in one simulator.
struct Batches {
    /// The number of seeds of one simulator.
    static let size: UInt64 = 120

    private let given: SimulatorOptions

    init(_ options: SimulatorOptions) {
        given = options
    }

    private struct State {
        var next: UInt64
        var totals = Totals()
        var crashes = 0
    }

    /// Returns whether all runs kept all promises.
    func run() -> Bool {
        let options = given
        let end = options.seconds.map { Date() + $0 }
        let last = options.runs.map { options.seed + $0 } ?? .max
        let state = Monitored(State(next: options.seed))
        let threads = Monitored(options.jobs)
        for _ in 0..<options.jobs {
            Thread.detachNewThread {
                while end.map({ Date() < $0 }) ?? true {
                    let begin = state.withLock { state in
                        defer { state.next = min(last, state.next + Self.size) }
                        return state.next
                    }
                    let isOver = state.withLock { options.stopsAtFirst && $0.totals.red > 0 }
                    if isOver || begin >= last { break }
                    let output = Self.output(
                        of: options.words(seed: begin, runs: min(Self.size, last - begin))
                    )
                    state.withLock { state in
                        let lines = (output ?? "").split(separator: "\n")
                        let red = state.totals.red
                        if let line = lines.last, state.totals.add(line: line) {
                            if state.totals.red > red { for line in lines.dropLast() { print(line) } }
                        } else {
                            state.crashes += 1
                            print(output ?? "")
                            print("the simulator of seeds \(begin) to \(begin + Self.size - 1) crashed")
                        }
                    }
                }
                threads.withLock { $0 -= 1 }
                threads.wakeAll()
            }
        }
        _ = threads.wait { $0 == 0 ? true : nil }
        return state.withLock { state in
            print("seeds from \(options.seed) on: \(state.totals)")
            return state.totals.red == 0 && state.crashes == 0
        }
    }

    /// Runs a simulator and returns its standard output; nil if it can't be started or its output can't be read.
    private static func output(of words: [String]) -> String? {
        do {
            let path = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
            var simulator = try ChildProcess(starting: path, words)
            let text = String(decoding: try simulator.output.readToEnd(), as: UTF8.self)
            _ = try simulator.wait()
            return text
        } catch {
            return nil
        }
    }
}
