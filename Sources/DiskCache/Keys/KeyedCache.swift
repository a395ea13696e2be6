// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials

/// A cache, or a view of one: every call that takes a key is in an extension of this protocol.
///
/// ```swift
/// func page(_ path: String, in cache: some KeyedCache<Data>) throws -> Data? {
///     try cache.get(forKey: path)?.value
/// }
/// ```
///
/// ``SharedCache`` holds bytes under any key. A ``CacheView`` adds its prefix to each key, encodes and decodes the values,
/// and has its own default options. Files, chunks and numbers are bytes: a cache and its namespaces have calls for them,
/// typed views do not. No other type should conform.
public protocol KeyedCache<Value>: Sendable {
    /// The type of the values.
    associatedtype Value where Value == Codec.Value
    /// The codec of the values.
    associatedtype Codec: CacheCodec

    /// The cache that holds the values.
    var cache: SharedCache { get }
    /// Encodes and decodes the values.
    var codec: Codec { get }
    /// The prefix of each key; empty for all keys of the cache.
    var prefix: String { get }
    /// The options for values that are stored without options.
    var options: PutOptions { get }
}

extension SharedCache: KeyedCache {
    /// The type of the cache's own values.
    public typealias Value = Data
    /// The codec of the cache's own values.
    public typealias Codec = BytesCodec

    /// This cache.
    public var cache: SharedCache { self }
    /// The codec that leaves bytes unchanged.
    public var codec: BytesCodec { BytesCodec() }
    /// Empty.
    public var prefix: String { "" }
    /// The default options.
    public var options: PutOptions { PutOptions() }
}

/// A part of a cache: the keys with a common prefix, their codec and their default options.
///
/// ```swift
/// let thumbs = cache.namespace("thumbs/", options: PutOptions(expires: .days(7))).typed(Thumbnail.self)
/// try thumbs.put(thumbnail, forKey: "user:1")             // the key "thumbs/user:1", for a week
/// let thumb = try thumbs.get(forKey: "user:1")?.value     // a Thumbnail
/// try thumbs.removeAll()
/// ```
///
/// It has the same calls as the cache itself (``KeyedCache``). A key may be empty if there is a prefix.
///
/// The memory tier holds decoded values, so that a hit there does not decode again. Views are cheap: create one wherever it
/// is needed. All views of a cache with the same type of codec share the values in memory.
public struct CacheView<Codec: CacheCodec>: KeyedCache {
    /// The type that the codec encodes.
    public typealias Value = Codec.Value

    /// The cache that holds the values.
    public let cache: SharedCache
    /// The codec that encodes and decodes the values.
    public let codec: Codec
    /// The prefix of each key.
    public let prefix: String
    /// The options for values that are stored without options.
    public let options: PutOptions

    init(_ cache: SharedCache, _ codec: Codec, prefix: String, _ options: PutOptions) {
        self.cache = cache
        self.codec = codec
        self.prefix = prefix
        self.options = options
    }

    // MARK: Keys

    /// Returns the key of an entry without the prefix; nil if the cache does not know the key, or the key is not in this
    /// view.
    public func key(of entry: CacheEntry) -> String? {
        guard let key = entry.key, key.utf8.starts(with: prefix.utf8) else { return nil }
        return withoutPrefix(key)
    }

    // MARK: All keys

    /// Removes all values of the view that were stored before this call, atomically.
    ///
    /// Like `removeAll(_:)` of ``SharedCache`` for the prefix: values whose keys the cache does not know are removed too.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func removeAll() throws(CacheError) {
        try cache.removeAll(.prefix(prefix))
    }

    /// Expires all values of the view that were stored before this call, atomically.
    ///
    /// Like `expireAll(_:staleFor:)` of ``SharedCache`` for the prefix.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func expireAll(staleFor: Duration? = nil) throws(CacheError) {
        try cache.expireAll(.prefix(prefix), staleFor: staleFor)
    }

    /// Returns the unexpired entries of the view, in no particular order.
    ///
    /// Like `entries(_:)` of ``SharedCache`` for the prefix. The entries have their full keys; ``key(of:)`` removes the
    /// prefix.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func entries() throws(CacheError) -> some Sequence<Result<CacheEntry, CacheError>> & Sendable {
        try cache.entries(.prefix(prefix))
    }
}

extension KeyedCache {
    // MARK: Views

    /// Returns a view of the keys that begin with `prefix`, preceded by the prefix of this view, if any.
    ///
    /// No separator is inserted between prefix and key: end `prefix` with one, as in `thumbs/`. The keys of a namespace can
    /// be listed, and removed or expired together in one step. `diskcache ls --prefix` lists them, and
    /// `directory.statistics(.prefix(…))` returns their disk usage. Keys that the cache does not know (``KeySelection``)
    /// can still be read and written.
    ///
    /// - Parameters:
    ///   - prefix: any string.
    ///   - options: the default options for storing values; nil for the default options of this cache or view.
    public func namespace(_ prefix: String, options: PutOptions? = nil) -> CacheView<Codec> {
        CacheView(cache, codec, prefix: self.prefix + prefix, options ?? self.options)
    }

    /// Returns a view of the same keys with values of `type`, stored as JSON.
    ///
    /// - Parameters:
    ///   - type: the type of the values.
    ///   - options: the default options for storing values; nil for the default options of this cache or view.
    public func typed<Other: Codable & Sendable>(
        _ type: Other.Type,
        options: PutOptions? = nil
    ) -> CacheView<JSONCodec<Other>> {
        typed(by: JSONCodec(), options: options)
    }

    /// Returns a view of the same keys with values that `codec` encodes.
    ///
    /// - Parameters:
    ///   - codec: encodes and decodes the values.
    ///   - options: the default options for storing values; nil for the default options of this cache or view.
    public func typed<Other: CacheCodec>(by codec: Other, options: PutOptions? = nil) -> CacheView<Other> {
        CacheView<Other>(cache, codec, prefix: prefix, options ?? self.options)
    }

    // MARK: Keys

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

    // MARK: Asynchronous code

    /// Runs `body` on a library thread, where it may block while it waits for the disk or a lock.
    ///
    /// ```swift
    /// let report = try await cache.blocking { try $0.directory.collect() }
    /// ```
    ///
    /// - Returns: the result of `body`.
    /// - Throws: the error of `body`.
    public func blocking<Result: Sendable, Failure: Error>(
        _ body: @escaping @Sendable (Self) throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        try await offload(on: .lengthy) { () throws(Failure) in try body(self) }
    }
}
