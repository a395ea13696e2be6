// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform

/// Runs many seeds in simulators of their own, some hundred seeds each: the threads of killed processes, which never
/// run again, go with their simulator.
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
                        let lines = output.text.split(separator: "\n")
                        if let line = lines.last, state.totals.add(line: line) {
                            for line in lines.dropLast() { print(line) }
                        } else {
                            state.crashes += 1
                            print(output.text)
                            print(
                                "the simulator of seeds \(begin) to \(begin + Self.size - 1) crashed: \(output.errors)"
                            )
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

    private static func output(of words: [String]) -> (text: String, errors: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = words
        let (output, errors) = (Foundation.Pipe(), Foundation.Pipe())
        process.standardOutput = output
        process.standardError = errors
        do {
            try process.run()
        } catch {
            return ("", "\(error)")
        }
        let lines = Locked<Data>.Box(Data())
        errors.fileHandleForReading.readabilityHandler = { handle in
            let data = handle.availableData
            lines.value.withLock { $0 = ($0 + data).suffix(4096) }
        }
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        let tail = lines.value.withLock { String(decoding: $0, as: UTF8.self) }
        return (text, tail.split(separator: "\r").last.map(String.init) ?? "")
    }
}
