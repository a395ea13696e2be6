// SPDX-License-Identifier: Apache-2.0

import DiskCache
import DiskCacheCommand
import Platform

/// A transfer of values between this machine and others, several at a time.
struct Transfer {
    /// The outcome for one key.
    enum Outcome: Sendable {
        /// The value was transferred; its length in bytes.
        case done(Int64)
        /// The value did not need to be transferred.
        case present
        /// No store has the value.
        case missing
    }

    private struct State {
        var tally = TransferTally()
        var underWay = 0
        /// The first error of the cache; after it, no further transfers are started.
        var failure: CacheError?
    }

    private let verb: String
    private let count: Int
    private let parallel: Int
    private let state = Monitored(State())
    private let begin = ContinuousClock.now

    /// Creates a transfer.
    ///
    /// - Parameters:
    ///   - verb: The name of the activity, which the progress line shows.
    ///   - count: The number of keys.
    ///   - parallel: The maximum number of concurrent transfers.
    init(verb: String, count: Int, parallel: Int) {
        self.verb = verb
        self.count = count
        self.parallel = parallel
    }

    /// Calls `work` for each key, and shows the progress on a terminal.
    func run<Key: Sendable>(
        _ keys: [Key],
        _ work: @escaping @Sendable (Key) throws(CacheError) -> Outcome
    ) throws -> TransferTally {
        let pool = ThreadPool("diskcache-move", limit: parallel)
        return try ProgressLine.during { line in
            for key in keys {
                guard next() else { break }
                pool.run {
                    let tally = self.end(Result { () throws(CacheError) in try work(key) })
                    line.show(tally.line(self.verb, of: self.count, after: ContinuousClock.now - self.begin))
                }
            }
            let ended = state.wait { $0.underWay == 0 ? ($0.tally, $0.failure) : nil }
            if let failure = ended?.1 { throw failure }
            return ended?.0 ?? TransferTally()
        }
    }

    /// Waits until another transfer may start; returns false if no further transfers must start.
    private func next() -> Bool {
        let isToBegin: Bool? = state.wait { state in
            if state.failure != nil { return false }
            guard state.underWay < parallel else { return nil }
            state.underWay += 1
            return true
        }
        return isToBegin ?? false
    }

    private func end(_ result: Result<Outcome, CacheError>) -> TransferTally {
        let tally = state.withLock { state in
            state.underWay -= 1
            switch result {
            case .success(let outcome): state.tally.add(outcome)
            case .failure(let error): state.failure = state.failure ?? error
            }
            return state.tally
        }
        state.wakeAll()
        return tally
    }
}

/// The outcomes of all keys.
struct TransferTally: Sendable, Equatable {
    var done = 0
    var bytes: Int64 = 0
    var present = 0
    var missing = 0
    var failed = 0
    /// The number of uploads that are still pending; other processes will send them.
    var waiting = 0

    mutating func add(_ outcome: Transfer.Outcome) {
        switch outcome {
        case .done(let count):
            done += 1
            bytes += count
        case .present: present += 1
        case .missing: missing += 1
        }
    }

    /// Returns "pushing: 42 %, 420 keys, 12.0 MiB, 3.1 MiB/s, 5s left".
    func line(_ verb: String, of count: Int, after elapsed: Duration) -> String {
        let ended = done + present + missing
        let percent = count > 0 ? min(100, ended * 100 / count) : 100
        var parts = ["\(verb): \(percent) %", Quantity.grouped(ended, "key"), Quantity.text(bytes: bytes)]
        // A rate over less time predicts nothing.
        if elapsed >= .seconds(1), ended > 0 {
            let rate = Int64(Int(saturating: Double(bytes) / elapsed.inSeconds))
            let left = elapsed / Double(ended) * Double(max(0, count - ended))
            parts += ["\(Quantity.text(bytes: rate))/s", "\(Quantity.text(left)) left"]
        }
        return parts.joined(separator: ", ")
    }

    /// Returns "pushed 12 keys, 40.0 KiB; 1 missing".
    ///
    /// - Parameter verb: The activity in the past tense.
    func text(_ verb: String) -> String {
        let parts = [
            ("already here", present), ("missing", missing), ("failed", failed), ("waiting", waiting),
        ]
        let rest = parts.filter { $0.1 > 0 }.map { "; \(Quantity.grouped($0.1)) \($0.0)" }
        return "\(verb) \(Quantity.grouped(done, "key")), \(Quantity.text(bytes: bytes))\(rest.joined())\n"
    }
}
