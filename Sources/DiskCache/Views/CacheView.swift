// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// A part of a cache: the keys with a prefix, as the values of a codec, with terms of their own.
///
/// ```swift
/// let thumbs = cache.namespace("thumbs/", options: PutOptions(expires: .days(7))).typed(Thumbnail.self)
/// try thumbs.put(thumbnail, forKey: "user:1")             // the key "thumbs/user:1", for a week
/// let thumb = try thumbs.get(forKey: "user:1")?.value     // a Thumbnail
/// try thumbs.removeAll()
/// ```
///
/// Each call does what the one of ``SharedCache`` with the same name does, with the prefix put before the key. Files,
/// pieces and numbers are bytes: `cache.namespace(_:)` has calls for them, typed views don't. A key may be empty if there
/// is a prefix.
///
/// The memory tier keeps decoded values, so that a hit there does not decode again. Views are cheap: make one wherever it
/// is needed. All views of a cache with the same type of codec share what is in memory.
public struct CacheView<Codec: CacheCodec>: Sendable {
    /// The type that the codec encodes.
    public typealias Value = Codec.Value

    /// The cache that holds the values.
    public let cache: SharedCache
    /// The codec that writes and reads them.
    public let codec: Codec
    /// What stands before each key.
    public let prefix: String
    /// How values are stored for which a call says nothing else.
    public let options: PutOptions

    init(_ cache: SharedCache, _ codec: Codec, prefix: String, _ options: PutOptions) {
        self.cache = cache
        self.codec = codec
        self.prefix = prefix
        self.options = options
    }

    /// The key in this view of an entry of the cache, as an entry has the whole one; nil if the cache does not know the
    /// key, or it is none of this view.
    public func key(of entry: CacheEntry) -> String? {
        guard let key = entry.key, key.utf8.starts(with: prefix.utf8) else { return nil }
        return withoutPrefix(key)
    }

    // MARK: Keys

    /// What the view hands over to.
    var source: CodecSource<Codec> { CodecSource(cache: cache, codec: codec) }

    /// The key as the cache has it.
    func whole(_ key: String) -> String { prefix.isEmpty ? key : prefix + key }

    /// A key of the cache that has the prefix, as this view has it.
    func withoutPrefix(_ key: String) -> String {
        prefix.isEmpty ? key : String(decoding: key.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
    }

    /// Values by their keys in the cache.
    func byWholeKeys<Element>(_ elements: [String: Element]) -> [String: Element] {
        prefix.isEmpty ? elements : elements.reduce(into: [:]) { $0[whole($1.key)] = $1.value }
    }

    /// Values by their keys in this view.
    func byOwnKeys<Element>(_ elements: [String: Element]) -> [String: Element] {
        prefix.isEmpty ? elements : elements.reduce(into: [:]) { $0[withoutPrefix($1.key)] = $1.value }
    }
}

/// A source of views: a cache, and each of its views.
public protocol CacheViewSource: Sendable {
    /// How it reads and writes values.
    associatedtype Codec: CacheCodec

    /// All of it.
    var view: CacheView<Codec> { get }
}

extension SharedCache: CacheViewSource {
    /// The codec of the cache itself.
    public typealias Codec = BytesCodec

    /// All keys, as bytes.
    public var view: CacheView<BytesCodec> { CacheView(self, BytesCodec(), prefix: "", PutOptions()) }
}

extension CacheView: CacheViewSource {
    /// This view.
    public var view: CacheView<Codec> { self }
}

extension CacheViewSource {
    /// The keys that begin with `prefix`; of a view with a prefix those that begin with that and then this one.
    ///
    /// Nothing is put between prefix and key: `prefix` should end in a character by which it ends, as in `thumbs/`. What
    /// is in a namespace can be listed, removed and made to expire by itself, each of these in one step, and looked at with
    /// `diskcache ls --prefix`; `directory.statistics(.prefix(…))` tells what it takes. A key that the cache does not
    /// know (``KeySelection``) can still be got and put.
    ///
    /// - Parameters:
    ///   - prefix: any string.
    ///   - options: how values are stored for which a call says nothing else; nil: as in what this is made from.
    public func namespace(_ prefix: String, options: PutOptions? = nil) -> CacheView<Codec> {
        let view = view
        return CacheView(view.cache, view.codec, prefix: view.prefix + prefix, options ?? view.options)
    }

    /// The same keys as values of `type`, which are stored as JSON.
    ///
    /// - Parameters:
    ///   - type: the type of the values.
    ///   - options: how values are stored for which a call says nothing else; nil: as in what this is made from.
    public func typed<Value: Codable & Sendable>(
        _ type: Value.Type,
        options: PutOptions? = nil
    ) -> CacheView<JSONCodec<Value>> {
        typed(by: JSONCodec(), options: options)
    }

    /// The same keys as values that `codec` writes and reads.
    ///
    /// - Parameters:
    ///   - codec: writes and reads the values.
    ///   - options: how values are stored for which a call says nothing else; nil: as in what this is made from.
    public func typed<Other: CacheCodec>(by codec: Other, options: PutOptions? = nil) -> CacheView<Other> {
        let view = view
        return CacheView<Other>(view.cache, codec, prefix: view.prefix, options ?? view.options)
    }
}
