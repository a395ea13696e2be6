// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

/// A value that is not on disk; it is encoded and hashed only if its entry is requested.
final class UnstoredValue<Codec: CacheCodec>: MemoryValue<Codec.Value>, @unchecked Sendable {
    private let codec: Codec
    /// The digest, length and checksum of the encoded value; nil until they are requested.
    ///
    /// Guarded by ``descriptions``.
    private var content: Content?

    /// Creates a value that is not on disk.
    ///
    /// - Parameter draft: the value's record; its content is ignored.
    init(
        _ value: Codec.Value,
        key: String,
        in space: KeySpace,
        _ codec: Codec,
        draft: Record,
        cost: Int = 0,
        wholeCost: Int? = nil
    ) {
        self.codec = codec
        super.init(
            value,
            key: key,
            in: space,
            form: ObjectIdentifier(Codec.self),
            record: draft,
            cost: cost,
            wholeCost: wholeCost
        )
    }

    /// - Complexity: O(*n*) in the value's bytes the first time.
    override func makeRecord() -> Record {
        var record = record
        if let content = describedContent() { record.content = content }
        return record
    }

    /// Returns the content of the value; nil if the value can't be encoded.
    private func describedContent() -> Content? {
        if let known = descriptions.value.value.withLock({ _ in content }) { return known }
        // The codec is user code, which must run under no lock.
        guard let bytes = try? codec.encode(value) else { return nil }
        let made = Content(of: bytes.span)
        descriptions.value.value.withLock { _ in content = made }
        return made
    }

    override func replacing(_ value: Codec.Value, cost: Int, wholeCost: Int?) -> MemoryValue<Codec.Value> {
        UnstoredValue(value, key: key, in: space, codec, draft: record, cost: cost, wholeCost: wholeCost)
    }
}

/// Guards the `content` of all unstored values; a lock for each value would take one more allocation.
private let descriptions = PerProcess { Locked.Box(()) }
