// SPDX-License-Identifier: Apache-2.0

import Platform

/// Runs numbered tasks on several threads: the caller's thread, and threads that end when the work is done.
enum ShardWorkers {
    /// The default number of threads: the number of processors, at most 4.
    ///
    /// With 4 threads on two processors, unlinking takes half as long as with one thread. 8 threads are hardly faster,
    /// because they wait for the journal's lock.
    static var usualSize: Int { min(4, CurrentProcess.processorCount) }

    /// The remaining tasks, and the threads that work on them.
    private struct Board {
        /// The lane of each task; nil if the task has begun.
        var lanes: [Int?]
        /// The first task that may not have begun.
        var first = 0
        /// The lanes of the running tasks.
        var busy: [Int] = []
        /// The number of tasks that have begun.
        var begun = 0
        /// The number of threads besides the caller's.
        var atWork = 0
        var isOver = false
        var failure: CacheError?

        /// Returns the next task to run: the first one whose lane has no running task.
        ///
        /// Returns nil if there is no such task, or if a task has failed. The threads that run tasks in the other lanes
        /// do the remaining tasks.
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

    /// Runs `task` once for each element of `lanes`, and returns when all tasks have ended.
    ///
    /// The tasks begin in order, but tasks of the same lane run one after the other, because they would wait for each
    /// other anyway. Each thread has a separate worker: the caller's thread uses `worker`, and every other thread uses a
    /// copy of it. After a task returns false or throws, no other task begins. `progress` is called on the caller's
    /// thread before each of its tasks, with the number of tasks that began earlier.
    ///
    /// The effects of the tasks are visible after this function returns, because the caller waits for all threads under a
    /// mutex. If no more threads can be started, the existing threads do the work.
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

    /// Runs the next task; returns false if there is none.
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
