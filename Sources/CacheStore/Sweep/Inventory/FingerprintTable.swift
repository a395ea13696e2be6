// SPDX-License-Identifier: Apache-2.0

import Platform

/// A dictionary whose keys are digests, identified by 64-bit fingerprints.
///
/// It takes 8 bytes per slot in addition to the value; 38 to 75 per cent of the slots are in use.
///
/// Two digests with the same fingerprint share a value. Of tables with a million digests, one in 37 million has such a
/// pair; of tables with a billion digests, one in 37. Each table has a different hash seed.
struct FingerprintTable<Value: Sendable>: Sendable {
    private var known: [UInt64: Value] = [:]
    private let vacant: Value
    /// A random seed, so that an attacker can't choose digests that collide.
    private let seed: SIMD4<UInt64>

    /// - Parameter vacant: the value of an unknown digest.
    init(vacant: Value, seed: SIMD4<UInt64> = .random(in: 0 ... .max)) {
        self.vacant = vacant
        self.seed = seed
    }

    var count: Int { known.count }

    /// The value of `digest`, or the vacant value if it is unknown; changing it adds the digest to the table.
    subscript(digest: Digest) -> Value {
        get { value(of: digest) ?? vacant }
        _modify {
            let (fingerprint, vacant) = (fingerprint(of: digest), vacant)
            yield &known[fingerprint, default: vacant]
        }
    }

    /// Returns the value of `digest`, or nil if it is unknown.
    func value(of digest: Digest) -> Value? { known[fingerprint(of: digest)] }

    /// The values of all known digests.
    var values: some Sequence<Value> { known.values }

    /// Returns a hash that combines both halves of products of seeded words, so that a difference anywhere in the digest
    /// changes the result.
    func fingerprint(of digest: Digest) -> UInt64 {
        let first = (digest.rawWords[0] ^ seed[0]).multipliedFullWidth(by: digest.rawWords[1] ^ seed[1])
        let second = (digest.rawWords[2] ^ seed[2]).multipliedFullWidth(by: digest.rawWords[3] ^ seed[3])
        return first.high ^ first.low ^ second.high ^ second.low
    }
}
