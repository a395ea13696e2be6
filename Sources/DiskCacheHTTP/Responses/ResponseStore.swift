// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import Platform

/// A stored response, as it was found.
struct Stored: Sendable {
    let key: String
    let entry: CacheEntry
    private(set) var response: StoredResponse
    /// The bytes, if they were requested.
    let value: Data?

    /// Returns nil if the entry is not a response, or was stored before its URL was invalidated.
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

    /// Whether responses to other requests for the same URL are stored.
    var hasVariants: Bool {
        // Credentials always select, whatever a response says.
        choice?.index.rules.contains { $0.contains { $0 != Variant.credentials } } ?? false
    }
}

/// The stored responses: the request fields that select them under the URL, the responses under the URL and a digest of
/// those fields.
///
/// Nothing is shared through remote servers: responses may be meant for one user, and other machines can ask the origin
/// servers themselves.
struct ResponseStore: Sendable {
    /// A view with the keys of downloads, which are separate from keys that callers give.
    let cache: SharedCache
    let options: HTTPCacheOptions
    /// The end of keys, after the URL: the client certificate of the fetch; empty without one.
    private let identity: String

    init(cache: SharedCache, options: HTTPCacheOptions) {
        (self.cache, self.options) = (cache.downloads, options)
        identity = options.certificateFile.map { " as \(Self.identity(of: $0))" } ?? ""
    }

    /// Returns the first digits of the file's SHA-256, or random ones if it can't be read.
    ///
    /// In that case requests can't use the file either, and they report the error.
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

    /// Returns the key by which equal requests share a flight: by the selecting fields, if they are known.
    func flightKey(_ request: HTTPRequest, _ choice: Choice?, _ hasher: CredentialHasher) -> String {
        let newest = choice?.index.variants(for: request, hasher: { hasher($0) }).first
        let variant = newest ?? Variant(of: request, fields: [Variant.credentials], hasher: { hasher($0) })
        // Never the key of a response, which is not the outcome of a flight and would be removed.
        return "fetch " + key(request.url, variant)
    }

    /// Returns the hasher that distinguishes credentials, without a key if the request has no credentials.
    ///
    /// If the key is not available, a random one is used: then no response is found, and never a wrong one.
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

    /// Returns the stored response for `request`, or an empty result, also if the cache can't be read.
    ///
    /// - Parameter wantsBytes: whether to read the body, too, from memory if it is there.
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
        // Rounded down and clamped before the conversion, which therefore can't fail. NaN counts as 1970.
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
    /// - Returns: nil if the response has been replaced, or its URL invalidated.
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

    /// Invalidates all responses that are stored for this URL, for any request.
    ///
    /// Responses that were requested before and arrive within an hour are not stored either. Costs a small put.
    func invalidate(_ url: HTTPURL) throws(CacheError) {
        var terms = PutOptions(expires: .after(.seconds(3600)), onAccess: .keep)
        terms.staysHere = true
        try cache.put(Choice.invalidated.data, forKey: key(url), options: terms)
    }

    /// The freshness lifetime and the tags of a response.
    struct Terms: Sendable {
        /// In seconds.
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

    /// Records the fields that select a response that is being stored.
    ///
    /// - Returns: the epoch, or nil if the URL has been invalidated since `seen`.
    private func enroll(_ variant: Variant, _ url: HTTPURL, seen: Choice?, _ terms: Terms) throws -> String? {
        let life = Duration.seconds(terms.fresh) + options.keepsStale
        let least = now.addingTimeInterval(Double(life.saturatingNanoseconds) / 1e9)
        var epoch: String?
        try cache.update(forKey: key(url)) { hit in
            let present = hit.flatMap { Choice($0.value) }
            epoch = nil
            // A writer that has seen no choice may add a response, but not after an invalidation.
            let isOutdated = seen.map { present?.epoch != $0.epoch } ?? present?.isInvalidated ?? false
            if isOutdated { return Computed<Data>.unchanged() }
            var choice = present ?? Choice()
            choice.index.add(variant)
            epoch = choice.epoch
            let lasts = hit?.entry.expires.map { $0 >= least } ?? true
            if choice == present, lasts { return Computed<Data>.unchanged() }
            // `keepsStale` longer than necessary, so that renewing the response need not renew this each time.
            let expires = Expiration.after(life + options.keepsStale)
            let terms = PutOptions(expires: expires, onAccess: .keep)
            return Computed<Data>.value(choice.data, terms)
        }
        return epoch
    }
}
