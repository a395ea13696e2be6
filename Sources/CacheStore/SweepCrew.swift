// SPDX-License-Identifier: Apache-2.0

import Platform

/// Threads that share out numbered tasks: the caller's own and some that end with the work.
enum SweepCrew {
    /// As many as there are processors, at most 4: what unlinking on 4 threads takes on two processors is half of
    /// what it takes on one, and with 8 it is hardly less, as the journal's lock is what they wait for.
    static var usualSize: Int { min(4, Processors.count) }

    private struct Board {
        var next = 0
        /// Threads beside the caller's.
        var atWork = 0
        var isOver = false
        var failure: StoreError?
    }

    /// Runs `task` once for each number below `count`, in that order of beginning, and returns when all have ended.
    ///
    /// Each thread has a worker of its own, the caller's thread `worker` and the others copies of it. The first
    /// task that returns false or throws is the last to be begun. `progress` is called on the caller's thread,
    /// with a number of tasks that were begun, before each task of that thread.
    ///
    /// What a task has done is seen by whoever runs after this has returned: the caller waits for all under a
    /// mutex. Where no more threads are to be had, those that there are do the work.
    ///
    /// - Throws: what the first task threw that did.
    static func run<Worker: Sendable>(
        _ count: Int,
        threads: Int,
        worker: inout Worker,
        progress: (Int) -> Void,
        task: @escaping @Sendable (inout Worker, Int) throws(StoreError) -> Bool
    ) throws(StoreError) {
        let board = Monitored(Board())
        for _ in 1..<max(1, min(threads, count)) {
            let copy = worker
            board.withLock { $0.atWork += 1 }
            do throws(Errno) {
                try DetachedThread.start("diskcache-sweep") {
                    var worker = copy
                    work(count, board, &worker, { _ in }, task)
                    board.withLock { $0.atWork -= 1 }
                    board.wakeAll()
                }
            } catch {
                board.withLock { $0.atWork -= 1 }
                break
            }
        }
        work(count, board, &worker, progress, task)
        let failure: StoreError?? = board.wait { $0.atWork == 0 ? .some($0.failure) : nil }
        if let failure = failure ?? nil { throw failure }
    }

    private static func work<Worker>(
        _ count: Int,
        _ board: Monitored<Board>,
        _ worker: inout Worker,
        _ progress: (Int) -> Void,
        _ task: (inout Worker, Int) throws(StoreError) -> Bool
    ) {
        while true {
            let number: Int? = board.withLock { board in
                if board.isOver || board.next == count { return nil }
                board.next += 1
                return board.next - 1
            }
            guard let number else { return }
            progress(number)
            do throws(StoreError) {
                if try !task(&worker, number) { board.withLock { $0.isOver = true } }
            } catch {
                board.withLock { board in
                    board.isOver = true
                    if board.failure == nil { board.failure = error }
                }
            }
        }
    }
}
