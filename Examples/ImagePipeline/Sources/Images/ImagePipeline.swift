// SPDX-License-Identifier: Apache-2.0

import DiskCache
import DiskCacheHTTP
import Foundation

/// Pictures by their URLs, in the sizes that are asked for: each downloaded once, and decoded once a size,
/// for all tasks and processes that share the cache.
///
/// The one at `URL` with a longer side of 320 pixels has the key `picture/320/URL`, the whole one
/// `picture/whole/URL`; what was downloaded has the keys of `HTTPCache`. All of them have the URL as their
/// tag.
public struct ImagePipeline: Sendable {
    /// A picture's file as it came.
    public struct Original: Sendable {
        /// JPEG or PNG.
        public let file: Data
        /// Differs where the file differs: its digest, for example.
        public let version: String

        /// A file and what it is told from another one by.
        public init(file: Data, version: String) {
            (self.file, self.version) = (file, version)
        }
    }

    /// Gets the file of a picture as it is now; nil: there is none.
    public typealias Source = @Sendable (_ address: String) async throws -> Original?

    /// What a cache is there to save.
    public enum Step: String, Sendable {
        /// The source is asked for a file.
        case load
        /// A file is decoded.
        case decode
    }

    /// For how long it is remembered, by all processes, that there is no picture at an address.
    public static let absence: Duration = .seconds(60)
    /// How pictures are stored unless it is said otherwise: shown for a minute before the source is asked
    /// again, and kept for a month after that, for when it says that nothing has changed.
    public static let terms = PutOptions(expires: .seconds(60), staleFor: .seconds(30 * 86_400))
    /// How pictures are read unless it is said otherwise: an old one for a day where there is no new one to
    /// be had.
    public static let reading = ReadOptions(staleIfError: .seconds(86_400))

    /// What it keeps pictures in.
    public let cache: SharedCache
    private let terms: PutOptions
    private let reading: ReadOptions
    private let onStep: @Sendable (Step, String) -> Void
    private let source: Source

    /// A pipeline that keeps pictures in `cache`, and gets them from anywhere.
    ///
    /// - Parameters:
    ///   - cache: any number of pipelines in any processes may share it.
    ///   - terms: how pictures are stored; their expiration says when the source is asked again.
    ///   - reading: whether old ones will do, while a new one is made or where that fails.
    ///   - onStep: told of each step that this pipeline takes, and of the address.
    ///   - source: gets the files; it should have a cache of its own, since each size asks it.
    public init(
        cache: SharedCache,
        terms: PutOptions = ImagePipeline.terms,
        reading: ReadOptions = ImagePipeline.reading,
        onStep: @escaping @Sendable (Step, String) -> Void = { _, _ in },
        source: @escaping Source
    ) {
        self.cache = cache
        self.terms = terms
        self.reading = reading
        self.onStep = onStep
        self.source = source
    }

    // MARK: Pictures

    /// A picture with its longer side that long at most; nil for its whole size.
    ///
    /// A task that is cancelled throws `CancellationError` at once; what it was computing is computed by
    /// another one that waits for it.
    ///
    /// - Returns: the picture, which says where it came from; nil if there is none at this address.
    /// - Throws: what the source throws, and ``PictureError``.
    public func picture(_ address: String, fitting side: Int? = nil) async throws -> CacheHit<Picture>? {
        try await picture(address, side, options(for: address))
    }

    /// Has pictures on disk before somebody asks for them, and leaves memory to those that are in sight.
    ///
    /// Cancel its task to stop it. What fails here fails again when it is asked for.
    ///
    /// - Returns: how many of them there are.
    @discardableResult
    public func prefetch(_ addresses: [String], fitting side: Int? = nil, atOnce: Int = 4) async -> Int {
        await withTaskGroup(of: Bool.self) { group in
            var count = 0
            for (number, address) in addresses.enumerated() {
                if number >= atOnce, await group.next() ?? false { count += 1 }
                if Task.isCancelled { break }
                group.addTask { await isStored(address, side) }
            }
            for await isStored in group where isStored { count += 1 }
            return count
        }
    }

    /// Removes a picture in all its sizes, and what was downloaded, in one step for all processes.
    public func remove(_ address: String) async throws {
        try await cache.blocking { try $0.removeAll(.tagged(address)) }
    }

    /// Has the source asked again for each picture before it is shown the next time.
    ///
    /// One step for all processes. Nothing is lost by it: what has not changed is shown as it is.
    public func recheckAll() async throws {
        try await cache.blocking { try $0.expireAll(.prefix("picture/")) }
    }

    // MARK: Steps

    /// Pictures of a size.
    private func pictures(fitting side: Int?) -> CacheView<PictureCodec> {
        cache.namespace("picture/\(side.map(String.init) ?? "whole")/").typed(by: PictureCodec())
    }

    private func options(
        for address: String,
        keeps: CacheConfiguration.Keeping = .memoryAndDisk
    ) -> PutOptions {
        var options = terms
        options.tags.append(address)
        options.keeps = keeps
        return options
    }

    private func isStored(_ address: String, _ side: Int?) async -> Bool {
        do {
            if try await pictures(fitting: side).entry(forKey: address) != nil { return true }
            return try await picture(address, side, options(for: address, keeps: .diskOnly)) != nil
        } catch {
            return false
        }
    }

    private func picture(
        _ address: String,
        _ side: Int?,
        _ options: PutOptions
    ) async throws -> CacheHit<Picture>? {
        try await pictures(fitting: side).hit(forKey: address, reading: reading) { computation in
            onStep(.load, address)
            guard let original = try await source(address) else { return .nothing(for: Self.absence) }
            // Nothing is decoded and nothing is written: what was made of that very file is good again.
            if let previous = computation.previous, previous.entry.entityTag == original.version {
                return .unchanged(options)
            }
            try Task.checkCancellation()
            guard PictureFormat(of: original.file) != nil else { throw PictureError.unreadable }
            onStep(.decode, address)
            var kept = options
            kept.entityTag = original.version
            return .value(try Self.made(of: original.file, fitting: side), kept)
        }
    }

    private static func made(of file: Data, fitting side: Int?) throws(PictureError) -> Picture {
        guard let side else { return try Picture(file: file) }
        return try Picture(downsampling: file, to: side)
    }
}

// MARK: By URL

extension ImagePipeline {
    /// A pipeline for pictures in the network: memory → disk → network.
    ///
    /// - Parameters:
    ///   - http: what downloads; of the same cache, so that removals and limits are about both.
    ///   - terms: how pictures are stored; their expiration says when `http` is asked again, which asks the
    ///   server only
    ///     where what it has is not fresh any more.
    ///   - reading: whether old ones will do, while a new one is made or where that fails.
    ///   - onStep: told of each step that this pipeline takes, and of the address.
    public init(
        cache: SharedCache,
        http: HTTPCache,
        terms: PutOptions = ImagePipeline.terms,
        reading: ReadOptions = ImagePipeline.reading,
        onStep: @escaping @Sendable (Step, String) -> Void = { _, _ in }
    ) {
        self.init(cache: cache, terms: terms, reading: reading, onStep: onStep) { url in
            try await Self.original(url, http)
        }
    }

    /// The longest file that is taken, bytes.
    public static let mostBytes: Int64 = 64 << 20

    private static func original(_ url: String, _ http: HTTPCache) async throws -> Original? {
        var request = FetchRequest(url)
        request.tags = [url]
        request.maximumSize = mostBytes
        let response = try await http.fetch(request)
        switch response.status {
        case 200:
            // What may not be stored, and has no tag, is another one each time.
            let version = response.digest ?? response.field("ETag") ?? UUID().uuidString
            return Original(file: response.body, version: version)
        case 404, 410: return nil
        default: throw PictureError.refused(status: response.status)
        }
    }
}
