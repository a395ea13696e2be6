// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import CacheStore

/// The versions of keys without entries, as a bucket of the file keeps them.
@Suite(.takesTurns) struct VersionBucketTests {
    private func key(_ number: Int) -> Digest { Digest(ofKey: "key \(number)") }
    private func version(_ number: UInt64) -> ChangeVersion { ChangeVersion(rawValue: number) }

    @Test func `a bucket round-trips`() {
        var bucket = VersionBucket()
        #expect(VersionBucket(bucket.bytes) == bucket)
        for number in 0..<40 {
            bucket.remember(
                version(UInt64(number + 1)),
                of: key(number),
                isRemoval: !number.isMultiple(of: 3)
            )
            #expect(VersionBucket(bucket.bytes) == bucket)
        }
        #expect(bucket.floor > .none)
        #expect(VersionBucket(Array(bucket.bytes.dropLast())) == nil)
    }

    @Test func `nothing older than a removed version is ever taken, whatever else is remembered`() {
        var generator = SeededGenerator(seed: 30)
        for _ in 0..<50 {
            var bucket = VersionBucket()
            var removed: [Int: UInt64] = [:]
            var latest: [Int: UInt64] = [:]
            for number in UInt64(1)...200 {
                let place = Int.random(in: 0..<40, using: &generator)
                let isRemoval = Int.random(in: 0..<3, using: &generator) == 0
                // Changes of different keys may be remembered in another order than they were made.
                let change = number * 10 + UInt64.random(in: 0..<50, using: &generator)
                guard change > latest[place] ?? 0 else { continue }
                bucket.remember(version(change), of: key(place), isRemoval: isRemoval)
                latest[place] = change
                if isRemoval { removed[place] = change }
                for (place, removal) in removed {
                    let known = bucket.version(of: key(place)) ?? bucket.floor
                    #expect(known >= version(removal))
                }
                for (place, change) in latest {
                    guard let known = bucket.version(of: key(place)) else { continue }
                    #expect(known == version(change))
                }
            }
            #expect(bucket.slots.allSatisfy { !$0.isUnused })
        }
    }

    @Test func `a full bucket drops the oldest eviction first, and keeps all removals that it can`() {
        var bucket = VersionBucket()
        for number in 0..<15 {
            bucket.remember(version(UInt64(100 + number)), of: key(number), isRemoval: number == 0)
        }
        bucket.remember(version(50), of: key(15), isRemoval: false)
        #expect(bucket.version(of: key(15)) == nil, "older than all others")
        bucket.remember(version(200), of: key(16), isRemoval: false)
        #expect(bucket.version(of: key(1)) == nil)
        #expect(bucket.version(of: key(0)) == version(100), "a removal")
        #expect(bucket.floor == .none)
        for number in 20..<34 {
            bucket.remember(version(UInt64(300 + number)), of: key(number), isRemoval: true)
        }
        #expect(bucket.version(of: key(0)) == version(100))
        #expect(bucket.floor == .none)
        bucket.remember(version(400), of: key(40), isRemoval: false)
        #expect(bucket.version(of: key(40)) == nil, "an eviction replaces no removal")
        bucket.remember(version(400), of: key(41), isRemoval: true)
        #expect(bucket.version(of: key(0)) == nil)
        #expect(bucket.floor == version(100))
        bucket.remember(version(150), of: key(42), isRemoval: true)
        #expect(bucket.version(of: key(42)) == nil)
        #expect(bucket.floor == version(150))
    }

    @Test func `a key that was removed, stored and evicted still counts as removed`() {
        var bucket = VersionBucket()
        bucket.remember(version(1), of: key(0), isRemoval: true)
        bucket.remember(version(2), of: key(0), isRemoval: false)
        for number in 1...15 {
            bucket.remember(version(UInt64(2 + number)), of: key(number), isRemoval: true)
        }
        #expect(bucket.version(of: key(0)) == nil)
        #expect(bucket.floor == version(2))
    }
}
