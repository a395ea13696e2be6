// SPDX-License-Identifier: Apache-2.0

import Platform

/// Threads that share out numbered tasks: the caller's own and some that end with the work.
enum SweepCrew {
    /// As many as there are processors, at most 4: what unlinking on 4 threads takes on two processors is half of
    /// what it takes on one, and with 8 it is hardly less, as the journal's lock is what they wait for.
    static var usualSize: Int { min(4, CurrentProcess.processorCount) }

    /// What there is to do, and who does it.
    private struct Board {
        /// The lanes of the tasks; nil for those that were begun.
        var lanes: [Int?]
        /// The first task that may not have been begun.
        var first = 0
        /// The lanes of tasks under way.
        var busy: [Int] = []
        /// How many were begun.
        var begun = 0
        /// Threads beside the caller's.
        var atWork = 0
        var isOver = false
        var failure: CacheError?

        /// The next task to be begun: the first one in a lane that nobody is in.
        ///
        /// nil if there is none: whoever is in the lanes of the others does those, too.
        mutating func begin() -> Int? {
            while first < lanes.count, lanes[first] == nil { first += 1 }
            if isOver { return nil }
            let free = lanes[first...].firstIndex { $0.map { !busy.contains($0) } ?? false }
            guard let number = free, let lane = lanes[number] else { return nil }
            busy.append(lane)
            lanes[number] = nil
            begun += 1
            return number
        }
    }

    /// Runs `task` once for each place in `lanes`, and returns when all have ended.
    ///
    /// They are begun in their order, but those of one lane one after the other, as they would wait for each other
    /// anyway. Each thread has a worker of its own, the caller's thread `worker` and the others copies of it. After a
    /// task that returns false or throws none is begun. `progress` is called on the caller's thread, with the number of
    /// tasks that were begun, before each task of that thread.
    ///
    /// What a task has done is seen by whoever runs after this has returned: the caller waits for all under a
    /// mutex. Where no more threads are to be had, those that there are do the work.
    ///
    /// - Returns: false where a task returned that.
    /// - Throws: what the first task threw that did.
    @discardableResult
    static func run<Worker: Sendable>(
        _ lanes: [Int],
        threads: Int,
        worker: inout Worker,
        progress: (Int) -> Void,
        task: @escaping @Sendable (inout Worker, Int) throws(CacheError) -> Bool
    ) throws(CacheError) -> Bool {
        let board = Monitored(Board(lanes: lanes))
        // One task before there are others, so that it initializes the globals that all of them use: in a child by
        // fork(2) two threads that come upon one at once may spin for good (Swift 6.3, `swift_once`).
        guard workOnce(lanes, board, &worker, progress, task) else { return true }
        for _ in 1..<max(1, min(threads, lanes.count)) {
            let copy = worker
            board.withLock { $0.atWork += 1 }
            do throws(Errno) {
                try DetachedThread.start("diskcache-sweep") {
                    var worker = copy
                    while workOnce(lanes, board, &worker, { _ in }, task) {}
                    board.withLock { $0.atWork -= 1 }
                    board.wakeAll()
                }
            } catch {
                board.withLock { $0.atWork -= 1 }
                break
            }
        }
        while workOnce(lanes, board, &worker, progress, task) {}
        let end = board.wait { $0.atWork == 0 ? ($0.isOver, $0.failure) : nil }
        if let failure = end?.1 { throw failure }
        return !(end?.0 ?? false)
    }

    /// Does the next task; false where there is none.
    private static func workOnce<Worker>(
        _ lanes: [Int],
        _ board: Monitored<Board>,
        _ worker: inout Worker,
        _ progress: (Int) -> Void,
        _ task: (inout Worker, Int) throws(CacheError) -> Bool
    ) -> Bool {
        let begun = board.withLock { board in board.begin().map { ($0, board.begun) } }
        guard let (number, count) = begun else { return false }
        progress(count - 1)
        do throws(CacheError) {
            if try !task(&worker, number) { board.withLock { $0.isOver = true } }
        } catch {
            board.withLock { board in
                board.isOver = true
                if board.failure == nil { board.failure = error }
            }
        }
        board.withLock { $0.busy.removeAll { $0 == lanes[number] } }
        return true
    }
}
