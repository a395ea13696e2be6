// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import Synchronization

/// A task and a thread that both wake up every 20 ms.
///
/// The comparison shows how much longer the task waits for a processor than the thread, whatever the load of the machine.
final class Heartbeat: Sendable {
    static let pause: Duration = .milliseconds(20)
    /// The number of the thread's beats that make a gap long: 200 ms on an idle machine, twice the promised limit.
    ///
    /// A busy machine delays the task and the thread equally, but not at the same moment.
    private static let longGap = 10

    struct Report: Codable, Sendable {
        /// The number of beats of the task, and of the thread in the same time.
        var beats = 0
        var threadBeats = 0
        /// The number of gaps between two beats of the task in which the thread woke up at least ``longGap`` times.
        var longGaps = 0
        var longestMilliseconds = 0.0
    }

    private let wakeups = Atomic<Int>(0)
    private let isOver = Atomic<Bool>(false)
    private let state = Locked((report: Report(), last: 0, moment: ContinuousClock.now))

    /// Starts the task and the thread.
    init() {
        Thread.detachNewThread {
            while !self.isOver.load(ordering: .relaxed) {
                usleep(20_000)
                self.wakeups.add(1, ordering: .relaxed)
            }
        }
        Task { await self.beat() }
    }

    private func beat() async {
        while !isOver.load(ordering: .relaxed) {
            do { try await Task.sleep(for: Self.pause) } catch { return }
            note()
        }
    }

    private func note() {
        let (beats, now) = (threadBeats, ContinuousClock.now)
        state.withLock {
            $0.report.beats += 1
            $0.report.threadBeats = beats
            if beats - $0.last >= Self.longGap { $0.report.longGaps += 1 }
            $0.report.longestMilliseconds = max(
                $0.report.longestMilliseconds,
                (now - $0.moment) / .milliseconds(1)
            )
            ($0.last, $0.moment) = (beats, now)
        }
    }

    /// The number of times that the thread has woken up.
    var threadBeats: Int { wakeups.load(ordering: .relaxed) }

    /// The number of times that the task has woken up.
    var beats: Int { state.withLock { $0.report.beats } }

    /// Ends the task and the thread; a gap that is still open counts, too.
    func end() -> Report {
        isOver.store(true, ordering: .relaxed)
        note()
        return state.withLock { $0.report }
    }
}
