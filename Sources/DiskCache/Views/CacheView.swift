// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// A part of a cache: the keys with a prefix, with a codec and default options.
///
/// ```swift
/// let thumbs = cache.namespace("thumbs/", options: PutOptions(expires: .days(7))).typed(Thumbnail.self)
/// try thumbs.put(thumbnail, forKey: "user:1")             // the key "thumbs/user:1", for a week
/// let thumb = try thumbs.get(forKey: "user:1")?.value     // a Thumbnail
/// try thumbs.removeAll()
/// ```
///
/// Each call does the same as the call of ``SharedCache`` with that name, with the prefix added to the key. Files, chunks
/// and numbers are bytes: `cache.namespace(_:)` has calls for them, typed views do not. A key may be empty if there is a
/// prefix.
///
/// The memory tier holds decoded values, so that a hit there does not decode again. Views are cheap: create one wherever it
/// is needed. All views of a cache with the same type of codec share the values in memory.
public struct CacheView<Codec: CacheCodec>: Sendable {
    /// The type that the codec encodes.
    public typealias Value = Codec.Value

    /// The cache that holds the values.
    public let cache: SharedCache
    /// The codec that encodes and decodes them.
    public let codec: Codec
    /// The prefix of each key.
    public let prefix: String
    /// The default options for storing values.
    public let options: PutOptions

    init(_ cache: SharedCache, _ codec: Codec, prefix: String, _ options: PutOptions) {
        self.cache = cache
        self.codec = codec
        self.prefix = prefix
        self.options = options
    }

    /// Returns the key of an entry without the prefix; nil if the cache does not know the key, or the key is not in this
    /// view.
    public func key(of entry: CacheEntry) -> String? {
        guard let key = entry.key, key.utf8.starts(with: prefix.utf8) else { return nil }
        return withoutPrefix(key)
    }

    // MARK: Keys

    /// The source that implements the calls of the view.
    var source: CodecSource<Codec> { CodecSource(cache: cache, codec: codec) }

    /// Returns the full key, with the prefix.
    func whole(_ key: String) -> String { prefix.isEmpty ? key : prefix + key }

    /// Returns a full key without the prefix.
    func withoutPrefix(_ key: String) -> String {
        prefix.isEmpty ? key : String(decoding: key.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
    }

    /// Returns the elements under their full keys.
    func byWholeKeys<Element>(_ elements: [String: Element]) -> [String: Element] {
        prefix.isEmpty ? elements : elements.reduce(into: [:]) { $0[whole($1.key)] = $1.value }
    }

    /// Returns the elements under their keys without the prefix.
    func byOwnKeys<Element>(_ elements: [String: Element]) -> [String: Element] {
        prefix.isEmpty ? elements : elements.reduce(into: [:]) { $0[withoutPrefix($1.key)] = $1.value }
    }
}

/// A type that views can be made from: a cache, or one of its views.
public protocol CacheViewSource: Sendable {
    /// The codec of its values.
    associatedtype Codec: CacheCodec

    /// A view of all its keys.
    var view: CacheView<Codec> { get }
}

extension SharedCache: CacheViewSource {
    /// The codec of the cache's own values.
    public typealias Codec = BytesCodec

    /// A view of all keys, with their values as bytes.
    public var view: CacheView<BytesCodec> { CacheView(self, BytesCodec(), prefix: "", PutOptions()) }
}

extension CacheView: CacheViewSource {
    /// This view.
    public var view: CacheView<Codec> { self }
}

extension CacheViewSource {
    /// Returns a view of the keys that begin with `prefix`, preceded by the prefix of this view, if any.
    ///
    /// No separator is inserted between prefix and key: end `prefix` with one, as in `thumbs/`. The keys of a namespace can
    /// be listed, and removed or expired together in one step. `diskcache ls --prefix` shows them, and
    /// `directory.statistics(.prefix(…))` returns their disk usage. Keys that the cache does not know (``KeySelection``) can
    /// still be read and written.
    ///
    /// - Parameters:
    ///   - prefix: any string.
    ///   - options: the default options for storing values; nil for those of this cache or view.
    public func namespace(_ prefix: String, options: PutOptions? = nil) -> CacheView<Codec> {
        let view = view
        return CacheView(view.cache, view.codec, prefix: view.prefix + prefix, options ?? view.options)
    }

    /// Returns a view of the same keys with values of `type`, stored as JSON.
    ///
    /// - Parameters:
    ///   - type: the type of the values.
    ///   - options: the default options for storing values; nil for those of this cache or view.
    public func typed<Value: Codable & Sendable>(
        _ type: Value.Type,
        options: PutOptions? = nil
    ) -> CacheView<JSONCodec<Value>> {
        typed(by: JSONCodec(), options: options)
    }

    /// Returns a view of the same keys with values that `codec` encodes.
    ///
    /// - Parameters:
    ///   - codec: encodes and decodes the values.
    ///   - options: the default options for storing values; nil for those of this cache or view.
    public func typed<Other: CacheCodec>(by codec: Other, options: PutOptions? = nil) -> CacheView<Other> {
        let view = view
        return CacheView<Other>(view.cache, codec, prefix: view.prefix, options ?? view.options)
    }
}
