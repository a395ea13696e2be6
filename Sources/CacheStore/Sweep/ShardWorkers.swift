// SPDX-License-Identifier: Apache-2.0

import Platform

/// Threads that share numbered tasks: the caller's own and some that end with the work.
enum ShardWorkers {
    /// The number of processors, at most 4.
    ///
    /// On two processors, unlinking with 4 threads takes half as long as with one; 8 are hardly faster, because the threads
    /// wait for the journal's lock.
    static var usualSize: Int { min(4, CurrentProcess.processorCount) }

    /// The remaining tasks, and the threads that work on them.
    private struct Board {
        /// The lanes of the tasks; nil for tasks that have begun.
        var lanes: [Int?]
        /// The first task that may not have been begun.
        var first = 0
        /// The lanes of running tasks.
        var busy: [Int] = []
        /// The number of tasks that have begun.
        var begun = 0
        /// The number of threads besides the caller's.
        var atWork = 0
        var isOver = false
        var failure: CacheError?

        /// Returns the next task: the first one whose lane no thread is in.
        ///
        /// Returns nil if there is no such task: the threads in the other lanes do the remaining tasks.
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

    /// Runs `task` once for each element of `lanes`, and returns when all have ended.
    ///
    /// They begin in order, but tasks of the same lane run one after the other, as they would wait for each other anyway.
    /// Each thread has its own worker: the caller's thread has `worker`, the others have copies of it. After a task that
    /// returns false or throws, no other begins. `progress` is called on the caller's thread before each of its tasks, with
    /// the number of tasks that have begun.
    ///
    /// The effects of the tasks are visible after this function returns: the caller waits for all threads under a mutex. If
    /// no more threads can be started, the existing ones do the work.
    ///
    /// - Returns: false if a task returned false.
    /// - Throws: the error of the first task that threw.
    @discardableResult
    static func run<Worker: Sendable>(
        _ lanes: [Int],
        threads: Int,
        worker: inout Worker,
        progress: (Int) -> Void,
        task: @escaping @Sendable (inout Worker, Int) throws(CacheError) -> Bool
    ) throws(CacheError) -> Bool {
        let board = Monitored(Board(lanes: lanes))
        // Run one task before other threads exist, so that it initializes the globals that all of them use: in a child of
        // fork(2) two threads that reach the same global at once may spin forever (Swift 6.3, `swift_once`).
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

    /// Does the next task; returns false if there is none.
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
