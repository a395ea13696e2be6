// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import Platform

/// A stored response that a lookup found.
struct Stored: Sendable {
    let key: String
    let entry: CacheEntry
    private(set) var response: StoredResponse
    /// The body; nil if the lookup did not request it.
    let value: Data?

    /// Returns nil if the entry is not a response, or if it was stored before its URL was invalidated.
    init?(_ key: String, _ entry: CacheEntry, _ value: Data?, epoch: String) {
        guard let text = entry.metadata[StoredResponse.metadataName],
            let response = StoredResponse(text, body: { _ in .complete(entry.size) }), response.epoch == epoch
        else { return nil }
        self.init(key, entry, response, value)
    }

    init(_ key: String, _ entry: CacheEntry, _ response: StoredResponse, _ value: Data?) {
        (self.key, self.entry, self.response, self.value) = (key, entry, response, value)
        self.response.body = .complete(entry.size)
    }
}

/// The result of a lookup for a request.
struct Found: Sendable {
    var choice: Choice?
    var stored: Stored?

    /// Whether responses to requests with other fields are stored for the same URL.
    var hasVariants: Bool {
        // Credentials always select a response, even if its Vary does not name them.
        choice?.index.rules.contains { $0.contains { $0 != Variant.credentials } } ?? false
    }
}

/// The stored responses of a cache directory.
///
/// Each URL has a ``Choice``, which lists the request fields that select its responses. Each response is stored under the
/// URL and a digest of those fields.
///
/// Responses are not shared through remote servers: they may be meant for one user, and other machines can ask the origin
/// servers themselves.
struct ResponseStore: Sendable {
    /// The cache with a separate key space for downloads, so that their keys never equal the keys of callers.
    let cache: SharedCache
    let options: HTTPCacheOptions
    /// The part of each key after the URL, which identifies the client certificate of the fetch; empty without a
    /// certificate.
    private let identity: String

    init(cache: SharedCache, options: HTTPCacheOptions) {
        (self.cache, self.options) = (cache.downloads, options)
        identity = options.certificateFile.map { " as \(Self.identity(of: $0))" } ?? ""
    }

    /// Returns the first digits of the SHA-256 of the file at `path`, or random digits if the file can't be read.
    ///
    /// If the file can't be read, requests can't use it either, and they report the error.
    private static func identity(of path: String) -> Substring {
        do throws(Errno) {
            let bytes = try FileDescriptor(opening: path, .readOnly).readToEnd(limit: 1 << 20)
            if let bytes { return Digest(of: bytes.span).description.prefix(16) }
        } catch {}
        return Digest(of: CredentialHasher.makeKey()).description.prefix(16)
    }

    /// The current time of the cache's clock.
    var now: Date { cache.configuration.now?() ?? Date() }
    var date: HTTPDate { HTTPDate(now) }

    // MARK: Keys

    /// Returns the key of the choice for a URL.
    func key(_ url: HTTPURL) -> String {
        guard options.hidesQueries, let query = url.query else { return "http GET \(url.text)\(identity)" }
        return "http GET \(url.place)?\(Digest(of: Data(query.utf8)))\(identity)"
    }

    /// Returns the key of the response that these fields select.
    func key(_ url: HTTPURL, _ variant: Variant) -> String {
        "\(key(url))#\(Digest(of: Data(variant.text.utf8)))"
    }

    /// Returns the key under which equal requests share a flight; the key includes the selecting fields if they are
    /// known.
    func flightKey(_ request: HTTPRequest, _ choice: Choice?, _ hasher: CredentialHasher) -> String {
        let newest = choice?.index.variants(for: request, hasher: { hasher($0) }).first
        let variant = newest ?? Variant(of: request, fields: [Variant.credentials], hasher: { hasher($0) })
        // Must not equal the key of a response: a response is not the outcome of a flight, and the flight would remove
        // it.
        return "fetch " + key(request.url, variant)
    }

    /// Returns the hasher that distinguishes credentials; its key is empty if the request has no credentials.
    ///
    /// If the stored key is not available, the hasher uses a random one: lookups then find no response, but never a wrong
    /// one.
    func hasher(for request: HTTPRequest) async -> CredentialHasher {
        guard !request.secrets.isEmpty else { return CredentialHasher(key: Data()) }
        do throws(CacheError) {
            let hit = try await cache.get(forKey: CredentialHasher.name, reading: .here())
            if let hit { return CredentialHasher(key: hit.value) }
            let new = CredentialHasher.makeKey()
            let options = PutOptions(expires: .never, onAccess: .keep)
            let key = try await cache.blocking { (cache) throws(CacheError) -> Data? in
                if try cache.putIfAbsent(new, forKey: CredentialHasher.name, options: options) { return new }
                return try cache.get(forKey: CredentialHasher.name, reading: .here())?.value
            }
            return CredentialHasher(key: key ?? new)
        } catch {
            cache.count(.cacheFailure)
            return CredentialHasher(key: CredentialHasher.makeKey())
        }
    }

    // MARK: Lookup

    /// Returns the stored response for `request`; the result is empty if there is none or if the cache can't be read.
    ///
    /// - Parameter wantsBytes: whether to read the body as well, from memory if it is there.
    func find(
        _ request: HTTPRequest,
        _ policy: HTTPCachePolicy,
        _ hasher: CredentialHasher,
        wantsBytes: Bool
    ) async -> Found {
        var found = Found()
        do throws(CacheError) {
            let hit = try await cache.get(forKey: key(request.url), reading: .here())
            guard let choice = hit.flatMap({ Choice($0.value) }) else { return found }
            found.choice = choice
            var candidates: [Stored] = []
            for variant in choice.index.variants(for: request, hasher: { hasher($0) }) {
                let key = key(request.url, variant)
                if let stored = try await read(key, choice, wantsBytes) { candidates.append(stored) }
            }
            let responses = candidates.map(\.response)
            let chosen = policy.choice(among: responses, for: request, hasher: { hasher($0) })
            found.stored = candidates.first { $0.response == chosen }
        } catch {
            cache.count(.cacheFailure)
        }
        return found
    }

    private func read(
        _ key: String,
        _ choice: Choice,
        _ wantsBytes: Bool
    ) async throws(CacheError) -> Stored? {
        let reading = ReadOptions.here(acceptsStale: true)
        if wantsBytes {
            let hit = try await cache.get(forKey: key, reading: reading)
            return hit.flatMap { Stored(key, $0.entry, $0.value, epoch: choice.epoch) }
        }
        let entry = try await cache.entry(forKey: key, reading: reading)
        return entry.flatMap { Stored(key, $0, nil, epoch: choice.epoch) }
    }

    /// Opens the verified body of a stored response; returns nil if it has been removed or replaced.
    func open(_ stored: Stored) throws -> OpenFile? {
        let reading = ReadOptions.here(acceptsStale: true)
        let file = try cache.withDescriptor(forKey: stored.key, reading: reading) {
            (number, entry) -> OpenFile? in
            guard entry.digest == stored.entry.digest else { return nil }
            return OpenFile(try FileDescriptor.duplicate(number))
        }
        return file ?? nil
    }
}

extension HTTPDate {
    /// Rounds `date` down to a second and clamps it to the valid range.
    init(_ date: Date) {
        // Rounding and clamping first ensures that the conversion can't fail. NaN counts as 1970.
        let seconds = date.timeIntervalSince1970.rounded(.down)
        let limits = Double(Self.range.lowerBound)...Double(Self.range.upperBound)
        self.init(seconds: seconds.isNaN ? 0 : Int(min(max(seconds, limits.lowerBound), limits.upperBound)))
    }
}

// MARK: Writing, on threads that may block

extension ResponseStore {
    /// Stores a downloaded response; returns nil if its URL has been invalidated since `seen`.
    func store(
        _ partial: PartialFile,
        _ response: StoredResponse,
        _ url: HTTPURL,
        seen: Choice?,
        _ terms: Terms,
        check: (Digest) throws(CacheError) -> Void
    ) throws -> Stored? {
        guard let epoch = try enroll(response.variant, url, seen: seen, terms) else { return nil }
        let response = response.issued(in: epoch)
        let key = key(url, response.variant)
        let entry = try cache.put(partial, forKey: key, options: putOptions(response, terms), check: check)
        return Stored(key, entry, response, nil)
    }

    /// Replaces the fields of a stored response without writing its body.
    ///
    /// - Returns: nil if the response was replaced or its URL was invalidated.
    func renew(
        _ stored: Stored,
        as response: StoredResponse,
        _ url: HTTPURL,
        _ choice: Choice?,
        _ terms: Terms
    ) throws -> Stored? {
        guard try enroll(response.variant, url, seen: choice, terms) != nil else { return nil }
        let response = response.issued(in: stored.response.epoch)
        var terms = terms
        if terms.tags.isEmpty { terms.tags = stored.entry.tags }
        let options = putOptions(response, terms)
        let entry = try cache.renew(stored.entry, forKey: stored.key, options: options)
        return entry.map { Stored(stored.key, $0, response, stored.value) }
    }

    /// Invalidates all responses that are stored for this URL, whatever request fields select them.
    ///
    /// A response that was requested before the invalidation is not stored if it arrives within an hour. Costs a small
    /// put.
    func invalidate(_ url: HTTPURL) throws(CacheError) {
        var terms = PutOptions(expires: .after(.seconds(3600)), onAccess: .keep)
        terms.staysHere = true
        do throws(CacheError) {
            try cache.put(Choice.invalidated.data, forKey: key(url), options: terms)
        } catch {
            // A removal needs no space. Without the choice, no stored response is found.
            try cache.remove(forKey: key(url))
        }
    }

    /// The freshness lifetime and the tags of a response.
    struct Terms: Sendable {
        /// The freshness lifetime in seconds.
        var fresh: Int
        var tags: [String]
    }

    private func putOptions(_ response: StoredResponse, _ terms: Terms) -> PutOptions {
        PutOptions(
            expires: .after(.seconds(terms.fresh)),
            onAccess: .keep,
            staleFor: self.options.keepsStale,
            entityTag: response.fields.first("ETag"),
            lastModified: response.fields.first("Last-Modified"),
            contentType: response.fields.first("Content-Type"),
            tags: terms.tags,
            metadata: [StoredResponse.metadataName: response.text]
        )
    }

    /// Records which fields select the response that is about to be stored.
    ///
    /// - Returns: The epoch of the URL, or nil if the URL was invalidated since `seen`.
    private func enroll(_ variant: Variant, _ url: HTTPURL, seen: Choice?, _ terms: Terms) throws -> String? {
        let life = Duration.seconds(terms.fresh) + options.keepsStale
        let least = now.addingTimeInterval(Double(life.saturatingNanoseconds) / 1e9)
        var epoch: String?
        try cache.update(forKey: key(url)) { hit in
            let present = hit.flatMap { Choice($0.value) }
            epoch = nil
            // A writer that saw no choice may add a response, unless the URL was invalidated.
            let isOutdated = seen.map { present?.epoch != $0.epoch } ?? present?.isInvalidated ?? false
            if isOutdated { return Computed<Data>.unchanged() }
            var choice = present ?? Choice()
            choice.index.add(variant)
            epoch = choice.epoch
            let lasts = hit?.entry.expires.map { $0 >= least } ?? true
            if choice == present, lasts { return Computed<Data>.unchanged() }
            // The additional `keepsStale` ensures that not every renewal of the response must renew the choice, too.
            let expires = Expiration.after(life + options.keepsStale)
            let terms = PutOptions(expires: expires, onAccess: .keep)
            return Computed<Data>.value(choice.data, terms)
        }
        return epoch
    }
}
