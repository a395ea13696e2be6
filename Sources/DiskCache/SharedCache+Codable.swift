// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

extension SharedCache {
    /// Stores a value as JSON; all else is as when storing `Data`.
    ///
    /// - Throws: ``CacheError``, with the code `encoding` where the value can't be encoded.
    public func putValue(
        _ value: some Encodable,
        forKey key: String,
        expires: Expiration? = nil,
        onAccess: AccessExtension? = nil,
        attributes: EntryAttributes = EntryAttributes()
    ) throws(CacheError) {
        let encoder = JSONEncoder()
        // In order, so that equal values make equal bytes and are stored once.
        encoder.outputFormatting = .sortedKeys
        let data: Data
        do {
            data = try encoder.encode(value)
        } catch {
            throw CacheError(.encoding, "store \(key): \(error): give a value that JSON can represent")
        }
        try put(data, forKey: key, expires: expires, onAccess: onAccess, attributes: attributes)
    }

    /// The value of `key`, decoded from JSON.
    ///
    /// A value that does not decode as `type` is a miss: another version of the program stored it.
    public func value<Value: Decodable>(
        _ type: Value.Type,
        forKey key: String,
        allowingStale: Bool = false
    ) throws(CacheError) -> Value? {
        guard let hit = try get(key, allowingStale: allowingStale) else { return nil }
        do {
            return try JSONDecoder().decode(type, from: hit.data)
        } catch {
            return nil
        }
    }
}
