// SPDX-License-Identifier: Apache-2.0

import Platform

/// A sample of the keys that were evicted recently: it shows on a miss whether a larger cache would have hit.
///
/// The sample takes 256 words of the control file. One in ``sample`` keys is recorded, at the place that its digest
/// selects, until the next such key takes that place. So the words remember about the last 16,000 evictions. They are ghost
/// lists in the sense of Megiddo and Modha, ARC, FAST 2003.
package enum EvictedKeys {
    /// One in this many keys is sampled, on an eviction and on a miss.
    package static let sample = 64

    /// An evicted entry that was used within this time would probably have been used again.
    package static let youth: Duration = .seconds(600)

    fileprivate static func isSampled(_ key: Digest) -> Bool { key.word(3) & UInt64(sample - 1) == 0 }

    fileprivate static func place(of key: Digest) -> Int {
        ControlLayout.evictedKeys + Int(key.word(2) & UInt64(ControlLayout.evictedKeyCount - 1))
    }

    fileprivate static func mark(_ key: Digest) -> UInt64 { key.word(1) | 1 }
}

extension Control {
    /// Notes an eviction of a key.
    func noteEviction(of key: Digest) {
        guard EvictedKeys.isSampled(key), let words = writableWords else { return }
        words.store(EvictedKeys.mark(key), at: EvictedKeys.place(of: key))
    }

    /// Returns whether a missed key was evicted recently; each recorded eviction counts for one miss only.
    func takeEviction(of key: Digest) -> Bool {
        guard EvictedKeys.isSampled(key), let words = writableWords else { return false }
        let (place, mark) = (EvictedKeys.place(of: key), EvictedKeys.mark(key))
        return words.load(place) == mark && words.replace(mark, by: 0, at: place)
    }
}
