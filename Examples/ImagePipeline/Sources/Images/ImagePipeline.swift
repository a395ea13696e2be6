// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

/// Pictures by their addresses, in the sizes that are asked for: each loaded once, and decoded once a size,
/// for all tasks and processes that share the cache.
///
/// The file of `ADDRESS` as it came has the key `original/ADDRESS`, the one with a longer side of 320 pixels
/// `fit 320/ADDRESS`. All of them have the address as their tag.
public struct ImagePipeline: Sendable {
    /// Gets the file of a picture, from a server for example; nil: there is none.
    public typealias Loader = @Sendable (_ address: String) async throws -> Data?

    /// What a cache is there to save.
    public enum Step: String, Sendable {
        /// A file is loaded.
        case load
        /// A file that was loaded is decoded.
        case decode
    }

    /// For how long it is remembered, by all processes, that there is no picture at an address.
    public static let absence: Duration = .seconds(60)

    /// What it keeps pictures in.
    public let cache: SharedCache
    private let terms: PutOptions
    private let onStep: @Sendable (Step, String) -> Void
    private let load: Loader

    /// A pipeline that keeps pictures in `cache`.
    ///
    /// - Parameters:
    ///   - cache: any number of pipelines in any processes may share it.
    ///   - terms: how pictures are stored: for a week after they were used last, if nothing else is said.
    ///   - onStep: told of each step that this pipeline takes, and of the address.
    ///   - load: gets files that are not there.
    public init(
        cache: SharedCache,
        terms: PutOptions = PutOptions(expires: .days(7), onAccess: .renew),
        onStep: @escaping @Sendable (Step, String) -> Void = { _, _ in },
        load: @escaping Loader
    ) {
        self.cache = cache
        self.terms = terms
        self.onStep = onStep
        self.load = load
    }

    // MARK: Pictures

    /// A picture with its longer side that long at most; nil for its whole size.
    ///
    /// A task that is cancelled throws `CancellationError` at once; what it was computing is computed by
    /// another one that waits for it.
    ///
    /// - Returns: the picture, which says where it came from; nil if there is none at this address.
    /// - Throws: what the loader throws, and ``PictureError``.
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

    /// Removes a picture in all its sizes, in one step for all processes.
    public func remove(_ address: String) async throws {
        try await cache.blocking { try $0.removeAll(.tagged(address)) }
    }

    // MARK: Steps

    /// Files as they came.
    private var originals: CacheView<BytesCodec> { cache.namespace("original/") }

    /// Pictures of a size.
    private func pictures(fitting side: Int?) -> CacheView<PictureCodec> {
        let files = side.map { cache.namespace("fit \($0)/") } ?? originals
        return files.typed(by: PictureCodec())
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
        try await pictures(fitting: side).hit(forKey: address) { _ in
            // The whole picture has the file's own key, which is not asked for again while it is computed.
            guard let file = try await side == nil ? loaded(address) : original(address) else {
                return .nothing(for: Self.absence)
            }
            try Task.checkCancellation()
            onStep(.decode, address)
            guard let longest = side else { return .value(try Picture(file: file), options) }
            do {
                return .value(try Picture(downsampling: file, to: longest), options)
            } catch {
                // It may come whole the next time.
                try await originals.remove(forKey: address)
                throw error
            }
        }
    }

    /// The file as it came; kept on disk alone when it comes, as memory is for pixels.
    private func original(_ address: String) async throws -> Data? {
        let options = options(for: address, keeps: .diskOnly)
        let hit = try await originals.hit(forKey: address) { _ in
            guard let file = try await loaded(address) else { return .nothing(for: Self.absence) }
            return .value(file, options)
        }
        return hit?.value
    }

    private func loaded(_ address: String) async throws -> Data? {
        onStep(.load, address)
        guard let file = try await load(address) else { return nil }
        guard PictureFormat(of: file) != nil else { throw PictureError.unreadable }
        return file
    }
}
