// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import Synchronization

@testable import DiskCache

/// A tier with the values that a test gives it.
final class FakeTier: RemoteTier {
    let limit: Duration
    /// The number of lookups.
    let looks = Atomic<Int>(0)
    private let closed = Atomic<Bool>(false)
    private let values = Locked<[Digest: (text: String, expires: Timestamp?, tags: [String])]>([:])
    private let whileLooking = Locked<(@Sendable () -> Void)?>(nil)
    private let isUseful = Atomic<Bool>(true)

    init(limit: Duration = .seconds(60)) {
        self.limit = limit
    }

    func set(_ text: String, _ key: String, expires: Timestamp? = nil, tags: [String] = []) {
        values.withLock { $0[Digest(ofKey: key)] = (text, expires, tags) }
    }

    /// Sets a closure that runs during each lookup.
    func onLook(_ body: (@Sendable () -> Void)?) { whileLooking.withLock { $0 = body } }

    func setUseful(_ value: Bool) { isUseful.store(value, ordering: .relaxed) }

    var isClosed: Bool { closed.load(ordering: .relaxed) }
    var lookCount: Int { looks.load(ordering: .relaxed) }

    func isWorthAsking(_ key: Digest) -> Bool { isUseful.load(ordering: .relaxed) }

    func look(_ key: Digest, until deadline: ContinuousClock.Instant) -> RemoteValue? {
        looks.add(1, ordering: .relaxed)
        let body = whileLooking.withLock { $0 }
        body?()
        guard let found = values.withLock({ $0[key] }) else { return nil }
        let bytes = Data(found.text.utf8)
        let content = Content(of: bytes.span)
        var record = Record(content: content, created: .now)
        record.expires = found.expires
        record.details.tags = found.tags
        return RemoteValue(bytes: bytes, content: content, record: record)
    }

    func adopted(_ value: RemoteValue, for key: Digest) {}

    func close(until deadline: ContinuousClock.Instant) { closed.store(true, ordering: .relaxed) }

    var activity: CacheActivity.Remote { CacheActivity.Remote() }
}

extension FakeTier {
    /// Returns a cache in `directory` with this tier.
    func cache(
        in directory: String,
        _ change: (inout CacheConfiguration) -> Void = { _ in }
    ) throws -> SharedCache {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        change(&configuration)
        return try SharedCache(at: directory, configuration: configuration) { _ throws(CacheError) in self }
    }
}
