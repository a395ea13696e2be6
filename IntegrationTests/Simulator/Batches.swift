// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform

/// Runs many simulators, some of them at the same time, and sums their results.
///
/// The threads of killed simulated processes never end, so they would accumulate in one simulator.
struct Batches {
    /// The number of seeds of one simulator.
    static let size: UInt64 = 120

    /// The number of simulators that run at once.
    let jobs: Int
    /// Whether no simulator is started after a run that broke a promise.
    let stopsAtFirst: Bool

    private struct State {
        var totals = Totals()
        var crashes = 0
    }

    /// Runs simulators with the words that `next` returns, until it returns nil.
    ///
    /// Returns whether all runs kept all promises. `next` is called by several threads, one at a time.
    func run(_ next: @escaping () -> [String]?) -> Bool {
        let state = Monitored(State())
        let threads = Monitored(jobs)
        // Only called with the lock held.
        nonisolated(unsafe) let next = next
        for _ in 0..<jobs {
            Thread.detachNewThread {
                while let words = state.withLock({ stopsAtFirst && $0.totals.red > 0 ? nil : next() }) {
                    let output = Self.output(of: words)
                    state.withLock { state in
                        let lines = (output ?? "").split(separator: "\n")
                        let red = state.totals.red
                        if let line = lines.last, state.totals.add(line: line) {
                            if state.totals.red > red { for line in lines.dropLast() { print(line) } }
                        } else {
                            state.crashes += 1
                            print(output ?? "")
                            print("this simulator crashed: \(words.joined(separator: " "))")
                        }
                    }
                }
                threads.withLock { $0 -= 1 }
                threads.wakeAll()
            }
        }
        _ = threads.wait { $0 == 0 ? true : nil }
        return state.withLock { state in
            print(state.totals)
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
