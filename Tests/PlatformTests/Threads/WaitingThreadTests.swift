// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import Platform
import TestSupport
import Testing

@Suite(.takesTurns) struct WaitingThreadTests {
    /// Runs `body` outside of any task, as a program's main thread does.
    private func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) -> Value {
        let value = Locked<Value?>.Box(nil)
        onThreads(1) { _ in
            let result = body()
            value.value.withLock { $0 = result }
        }
        guard let result = value.value.withLock({ $0 }) else { preconditionFailure("the thread has ended") }
        return result
    }

    @Test func `all parts of a function run on the waiting thread`() {
        let places = onThread {
            let own = pthread_self()
            return WaitingThread.run { () -> [Bool] in
                var places = [pthread_equal(own, pthread_self()) != 0]
                await Task.yield()
                places.append(pthread_equal(own, pthread_self()) != 0 && WaitingThread.isCurrent)
                await withCheckedContinuation { continuation in
                    DispatchQueue.global().async { continuation.resume() }
                }
                places.append(pthread_equal(own, pthread_self()) != 0 && WaitingThread.isCurrent)
                async let child = pthread_equal(own, pthread_self()) != 0
                places.append(await child)
                return places
            }
        }
        #expect(places == [true, true, true, true])
    }

    @Test func `other tasks do not run on the waiting thread`() {
        let places = onThread {
            WaitingThread.run {
                (
                    await Task { WaitingThread.isCurrent }.value,
                    await Task.detached { WaitingThread.isCurrent }.value
                )
            }
        }
        #expect(places == (false, false))
    }

    @Test func `a function may start and await another one that blocks`() {
        let values = onThread {
            let outer = WaitingThread.run { () -> [Int] in
                let inner = Self.blocking {
                    WaitingThread.run { () -> Int in
                        await Task.yield(); return 1
                    }
                }
                await Task.yield()
                return [inner, WaitingThread.isCurrent ? 2 : 0]
            }
            return outer + [WaitingThread.isCurrent ? 0 : 3]
        }
        #expect(values == [1, 2, 3])
    }

    /// Calls blocking code, which an asynchronous function may not name.
    private static func blocking(_ body: () -> Int) -> Int { body() }

    @Test func `many functions at once have their own threads`() {
        let results = Locked<Set<Int>>.Box([])
        onThreads(16) { number in
            let value = WaitingThread.run { () -> Int in
                for _ in 0..<100 {
                    await Task.yield()
                    try? await Task.sleep(for: .microseconds(1))
                }
                return number
            }
            results.value.withLock { _ = $0.insert(value) }
        }
        #expect(results.value.withLock { $0 } == Set(0..<16))
    }
}
