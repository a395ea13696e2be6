// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import Platform

/// A response that is stored, as it was found.
struct Stored: Sendable {
    let key: String
    let entry: CacheEntry
    var head: StoredHead
    /// The bytes, if they were asked for.
    let value: Data?

    var response: StoredResponse { head.response(.complete(entry.size)) }

    /// Nil for one that is none, or that was stored before its URL was invalidated.
    init?(_ key: String, _ entry: CacheEntry, _ value: Data?, epoch: String) {
        guard let head = entry.metadata[StoredHead.name].flatMap(StoredHead.init), head.epoch == epoch else {
            return nil
        }
        self.init(key, entry, head, value)
    }

    init(_ key: String, _ entry: CacheEntry, _ head: StoredHead, _ value: Data?) {
        (self.key, self.entry, self.head, self.value) = (key, entry, head, value)
    }
}

/// What there is for a request.
struct Found: Sendable {
    var choice: Choice?
    var stored: Stored?

    /// Whether there are responses for other requests to the same URL.
    var hasVariants: Bool {
        // Credentials choose whatever a response says.
        choice?.index.rules.contains { $0.contains { $0 != Variant.credentials } } ?? false
    }
}

/// The responses in a cache: under a URL which fields of a request choose, under the URL and their digest
/// what is chosen.
///
/// All of it stays on this machine, whatever servers the cache shares other values through: responses may be
/// meant for one user, and others' origins are asked by those who want them.
struct Shelf: Sendable {
    /// Its keys are those of downloads: none that a caller gives names an entry of these.
    let cache: SharedCache
    let options: HTTPCacheOptions
    /// Of the user's key, once it was looked for.
    private let cipher = Locked<FieldCipher??>.Box(nil)
    /// Behind the URL in keys: whose certificate it was fetched with; empty without one.
    private let identity: String

    init(cache: SharedCache, options: HTTPCacheOptions) {
        (self.cache, self.options) = (cache.downloads, options)
        identity = options.certificateFile.map { " as \(Self.identity(of: $0))" } ?? ""
    }

    /// The first digits of a file's SHA-256; of one that can't be read some that nobody else has: servers are
    /// not asked with it either, and they are whose error it is.
    private static func identity(of path: String) -> Substring {
        do throws(Errno) {
            let bytes = try FileDescriptor(opening: path, .readOnly).readToEnd(limit: 1 << 20)
            if let bytes { return Digest(of: bytes.span).description.prefix(16) }
        } catch {}
        return Digest(of: Seal.makeKey()).description.prefix(16)
    }

    /// The moment by which the cache judges.
    var now: Date { cache.configuration.now?() ?? Date() }
    var date: HTTPDate { HTTPDate(now) }

    // MARK: Keys

    /// Under which the choice is.
    func key(_ url: HTTPURL) -> String {
        guard options.hidesQueries, let query = url.query else { return "http GET \(url.text)\(identity)" }
        return "http GET \(url.place)?\(Digest(of: Data(query.utf8)))\(identity)"
    }

    /// Under which what is chosen by these fields is.
    func key(_ url: HTTPURL, _ variant: Variant) -> String {
        "\(key(url))#\(Digest(of: Data(variant.text.utf8)))"
    }

    /// Under which those who want the same come together: by what chooses as far as that is known.
    func flightKey(_ request: HTTPRequest, _ choice: Choice?, _ seal: Seal) -> String {
        let newest = choice?.index.variants(for: request, seal: { seal($0) }).first
        let variant = newest ?? Variant(of: request, fields: [Variant.credentials], seal: { seal($0) })
        // Never that of a response: whoever comes to the flight would be given what is stored there.
        return "fetch " + key(request.url, variant)
    }

    /// What tells credentials apart; for requests without any, nothing.
    ///
    /// Where its key can't be had, one that nobody else has: then nothing is found, and nothing wrong.
    func seal(for request: HTTPRequest) async -> Seal {
        guard !request.secrets.isEmpty else { return Seal(key: Data()) }
        do throws(CacheError) {
            let hit = try await cache.get(forKey: Seal.name, reading: .here())
            if let hit { return Seal(key: hit.value) }
            let new = Seal.makeKey()
            let options = PutOptions(expires: .never, onAccess: .keep)
            let key = try await cache.blocking { (cache) throws(CacheError) -> Data? in
                if try cache.putIfAbsent(new, forKey: Seal.name, options: options) { return new }
                return try cache.get(forKey: Seal.name, reading: .here())?.value
            }
            return Seal(key: key ?? new)
        } catch {
            cache.count(.cacheFailure)
            return Seal(key: Seal.makeKey())
        }
    }

    // MARK: Looking

    /// What is stored for `request`; nothing also where the cache can't be read.
    ///
    /// - Parameter wantsBytes: whether to read them as well, from memory if they are there.
    func find(
        _ request: HTTPRequest,
        _ policy: HTTPCachePolicy,
        _ seal: Seal,
        wantsBytes: Bool
    ) async -> Found {
        var found = Found()
        do throws(CacheError) {
            let hit = try await cache.get(forKey: key(request.url), reading: .here())
            guard let choice = hit.flatMap({ Choice($0.value) }) else { return found }
            found.choice = choice
            var candidates: [Stored] = []
            for variant in choice.index.variants(for: request, seal: { seal($0) }) {
                let key = key(request.url, variant)
                if let stored = try await read(key, choice, wantsBytes) { candidates.append(stored) }
            }
            let responses = candidates.map(\.response)
            let chosen = policy.choice(among: responses, for: request, seal: { seal($0) })
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
        var stored: Stored?
        if wantsBytes {
            let hit = try await cache.get(forKey: key, reading: reading)
            stored = hit.flatMap { Stored(key, $0.entry, $0.value, epoch: choice.epoch) }
        } else {
            let entry = try await cache.entry(forKey: key, reading: reading)
            stored = entry.flatMap { Stored(key, $0, nil, epoch: choice.epoch) }
        }
        guard stored?.head.sealed != nil else { return stored }
        let cipher = await cache.blocking { (_: SharedCache) throws(Never) in userCipher() }
        stored?.head.open(forKey: key, with: cipher)
        return stored
    }

    /// What encrypts the cookies that are stored; blocks when it is first asked for.
    private func userCipher() -> FieldCipher? {
        cipher.value.withLock { known in
            if let known { return known }
            let new = options.keyFile.flatMap { FieldCipher(keyFile: $0) }
            known = .some(new)
            return new
        }
    }

    /// The bytes of what was found, checked; nil where it is not there any more.
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
    /// The second of `date`, or the first or last moment that there is.
    init(_ date: Date) {
        // Rounded down before it is limited, so that the conversion can't fail; no number at all is as good as 1970.
        let seconds = date.timeIntervalSince1970.rounded(.down)
        let limits = Double(Self.range.lowerBound)...Double(Self.range.upperBound)
        self.init(seconds: seconds.isNaN ? 0 : Int(min(max(seconds, limits.lowerBound), limits.upperBound)))
    }
}

// MARK: Writing, on threads that may block

extension Shelf {
    /// Stores what was downloaded; nil where its URL was invalidated since `seen`.
    func store(
        _ partial: PartialFile,
        _ response: StoredResponse,
        _ url: HTTPURL,
        seen: Choice?,
        _ terms: Terms,
        check: (Digest) throws(CacheError) -> Void
    ) throws -> Stored? {
        guard let epoch = try enroll(response.variant, url, seen: seen, terms) else { return nil }
        let head = StoredHead(response, epoch: epoch)
        let key = key(url, response.variant)
        let entry = try cache.put(partial, forKey: key, options: putOptions(head, key, terms), check: check)
        return Stored(key, entry, head, nil)
    }

    /// Gives what was found another head: no byte of it is written; nil where it is another one meanwhile.
    func renew(
        _ stored: Stored,
        as response: StoredResponse,
        _ url: HTTPURL,
        _ choice: Choice?,
        _ terms: Terms
    ) throws -> Stored? {
        guard try enroll(response.variant, url, seen: choice, terms) != nil else { return nil }
        let head = StoredHead(response, epoch: stored.head.epoch)
        var terms = terms
        if terms.tags.isEmpty { terms.tags = stored.entry.tags }
        let options = putOptions(head, stored.key, terms)
        let entry = try cache.renew(stored.entry, forKey: stored.key, options: options)
        return entry.map { Stored(stored.key, $0, head, stored.value) }
    }

    /// Nothing that is stored for this URL, for whatever request, is of use any more.
    ///
    /// Nor what was asked for before and comes within an hour. Costs a small put.
    func invalidate(_ url: HTTPURL) throws(CacheError) {
        var terms = PutOptions(expires: .after(.seconds(3600)), onAccess: .keep)
        terms.staysHere = true
        try cache.put(Choice.invalidated.data, forKey: key(url), options: terms)
    }

    /// How long, and with what.
    struct Terms: Sendable {
        /// Seconds.
        var fresh: Int
        var tags: [String]
    }

    private func putOptions(_ head: StoredHead, _ key: String, _ terms: Terms) -> PutOptions {
        PutOptions(
            expires: .after(.seconds(terms.fresh)),
            onAccess: .keep,
            staleFor: self.options.keepsStale,
            entityTag: head.fields.first("ETag"),
            lastModified: head.fields.first("Last-Modified"),
            contentType: head.fields.first("Content-Type"),
            tags: terms.tags,
            metadata: [StoredHead.name: head.text(forKey: key, cipher: userCipher)]
        )
    }

    /// Notes what chooses a response that is stored now; the epoch, nil where the URL was invalidated since
    /// `seen`.
    private func enroll(_ variant: Variant, _ url: HTTPURL, seen: Choice?, _ terms: Terms) throws -> String? {
        let life = Duration.seconds(terms.fresh) + options.keepsStale
        let least = now.addingTimeInterval(Double(life.saturatingNanoseconds) / 1e9)
        var epoch: String?
        try cache.update(forKey: key(url)) { hit in
            let present = hit.flatMap { Choice($0.value) }
            epoch = nil
            // Who has seen none may store beside others, but not after an invalidation.
            let isOutdated = seen.map { present?.epoch != $0.epoch } ?? present?.isInvalidated ?? false
            if isOutdated { return Computed<Data>.unchanged() }
            var choice = present ?? Choice()
            choice.index.add(variant)
            epoch = choice.epoch
            let lasts = hit?.entry.expires.map { $0 >= least } ?? true
            if choice == present, lasts { return Computed<Data>.unchanged() }
            // Twice as long as it has to: renewing the response need not renew this each time.
            let expires = Expiration.after(life + options.keepsStale)
            let terms = PutOptions(expires: expires, onAccess: .keep)
            return Computed<Data>.value(choice.data, terms)
        }
        return epoch
    }
}
