// SPDX-License-Identifier: Apache-2.0

import Platform

/// A dictionary that knows a digest by 64 bits of a hash of it: beside each value 8 bytes a place, of which 38 to 75 in
/// a hundred are in use.
///
/// Two digests with the same fingerprint share a value. Among a million there are two such in one table of 37 million,
/// among a billion in one of 37; the next table hashes in another way.
struct FingerprintTable<Value: Sendable>: Sendable {
    private var known: [UInt64: Value] = [:]
    private let vacant: Value
    /// Random, so that nobody can choose digests that collide.
    private let seed: SIMD4<UInt64>

    /// - Parameter vacant: the value of a digest that was not known.
    init(vacant: Value, seed: SIMD4<UInt64> = .random(in: 0 ... .max)) {
        self.vacant = vacant
        self.seed = seed
    }

    var count: Int { known.count }

    /// The value of `digest`, which is known from then on where it is changed.
    subscript(digest: Digest) -> Value {
        get { value(of: digest) ?? vacant }
        _modify {
            let (fingerprint, vacant) = (fingerprint(of: digest), vacant)
            yield &known[fingerprint, default: vacant]
        }
    }

    /// What is known of `digest`.
    func value(of digest: Digest) -> Value? { known[fingerprint(of: digest)] }

    /// The values of all digests that are known.
    var values: some Sequence<Value> { known.values }

    /// Products of seeded words, both halves of each: what differs anywhere in the digest differs here.
    func fingerprint(of digest: Digest) -> UInt64 {
        let first = (digest.rawWords[0] ^ seed[0]).multipliedFullWidth(by: digest.rawWords[1] ^ seed[1])
        let second = (digest.rawWords[2] ^ seed[2]).multipliedFullWidth(by: digest.rawWords[3] ^ seed[3])
        return first.high ^ first.low ^ second.high ^ second.low
    }
}
