// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import Synchronization

/// A task that wakes up every 20 ms, and a thread beside it that does the same: how much longer the task has to wait for
/// its turn than the thread, whatever else the machine does.
final class Heartbeat: Sendable {
    static let pause: Duration = .milliseconds(20)
    /// 200 ms where nothing else runs, twice what is promised: a machine that is busy with other things costs the task and
    /// the thread the same, but not at the same moment.
    private static let longGap = 10

    struct Report: Codable, Sendable {
        /// Of the task, and of the thread meanwhile.
        var beats = 0
        var threadBeats = 0
        /// How often the thread has woken up ``longGap`` times or more between two beats of the task.
        var longGaps = 0
        var longestMilliseconds = 0.0
    }

    private let wakeups = Atomic<Int>(0)
    private let isOver = Atomic<Bool>(false)
    private let state = Locked((report: Report(), last: 0, moment: ContinuousClock.now))

    /// Starts both.
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

    /// How often the thread has woken up.
    var threadBeats: Int { wakeups.load(ordering: .relaxed) }

    /// Of the task.
    var beats: Int { state.withLock { $0.report.beats } }

    /// Ends both; a gap that has no end yet counts too.
    func end() -> Report {
        isOver.store(true, ordering: .relaxed)
        note()
        return state.withLock { $0.report }
    }
}
