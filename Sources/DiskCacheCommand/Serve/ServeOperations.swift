// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// The operations of `serve`, executed on a cache one after the other, on the calling thread.
struct ServeOperations {
    /// The version of the protocol, incremented for each change that clients must know.
    static let protocolVersion = 1

    let cache: SharedCache
    /// The maximum length of an incoming value in bytes.
    let longestValue: Int

    /// Executes a request, and appends its answer.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - bytes: The bytes that follow the request's line.
    /// - Throws: Errors that ``ServeFault`` converts to answers, or an error of the output.
    func perform(_ request: ServeRequest, _ bytes: Data, _ answers: inout ServeAnswers) throws {
        if let fault = request.fault { throw fault }
        switch request.operation {
        case "get" where request.keys != nil: try getAll(request, &answers)
        case "get" where request.file != nil: try answers.send(copy(request), to: request.id)
        case "get": try get(request.theKey(), request, [:], &answers)
        case "put": try answers.send(put(request, bytes), to: request.id)
        case "remove": try answers.send(remove(request), to: request.id)
        case "has": try answers.send(["found": cache.contains(forKey: request.theKey())], to: request.id)
        case "entry": try answers.send(entry(request), to: request.id)
        case "touch": try answers.send(["found": touch(request)], to: request.id)
        case "removeAll": try answers.send(removeAll(request), to: request.id)
        case "stats": try answers.send(statistics(request), to: request.id)
        case "hello": try answers.send(hello, to: request.id)
        case let name?:
            let version = Self.protocolVersion
            throw ServeFault(.unknownOperation, "protocol \(version) has no operation '\(name)'")
        case nil: throw ServeFault(.badRequest, "the field op is missing: give an operation")
        }
    }

    // MARK: Reading

    /// Answers with the value of a key.
    ///
    /// `extra` contains additional fields of the answer.
    ///
    /// - Returns: Whether the key has a value.
    @discardableResult
    private func get(
        _ key: String,
        _ request: ServeRequest,
        _ extra: JSON.Object,
        _ answers: inout ServeAnswers
    ) throws -> Bool {
        guard let hit = try cache.get(forKey: key, reading: request.reading) else {
            try answers.send(JSON.Object(extra, ["found": false] as JSON.Object), to: request.id)
            return false
        }
        let stale: Bool? = hit.isStale ? true : nil
        let entry: JSON.Object? = request.entry == true ? hit.entry.json : nil
        let fields: JSON.Object = [
            "found": true, "source": hit.source.rawValue, "stale": stale, "entry": entry,
        ]
        try answers.send(JSON.Object(extra, fields), to: request.id, bytes: hit.value)
        return true
    }

    /// Sends an answer for each key and a final one, so that only one value is in memory at a time.
    private func getAll(_ request: ServeRequest, _ answers: inout ServeAnswers) throws {
        var hits = 0
        let keys = try request.theKeys()
        if request.file != nil {
            throw ServeFault(.badRequest, "keys and file can't be used together: give key instead of keys")
        }
        for (index, key) in keys.enumerated() {
            if try get(key, request, ["index": index, "more": true], &answers) { hits += 1 }
        }
        try answers.send(["hits": hits, "misses": keys.count - hits], to: request.id)
    }

    /// Copies a value to a file.
    private func copy(_ request: ServeRequest) throws -> JSON.Object {
        let entry = try cache.copyValue(
            forKey: request.theKey(),
            toFile: request.theFile() ?? "",
            reading: request.reading
        )
        let shown: JSON.Object? = request.entry == true ? entry?.json : nil
        return ["found": entry != nil, "entry": shown]
    }

    private func entry(_ request: ServeRequest) throws -> JSON.Object {
        let entry = try cache.entry(forKey: request.theKey(), reading: request.reading)
        return ["found": entry != nil, "entry": entry?.json]
    }

    // MARK: Writing

    private func put(_ request: ServeRequest, _ bytes: Data) throws -> JSON.Object {
        let key = try request.theKey()
        let options = try request.terms.options()
        let isConditional = request.terms.ifAbsent == true
        if let file = try request.theFile() {
            if request.length != nil {
                throw ServeFault(.badRequest, "file and length can't be used together: give one")
            }
            if isConditional { throw ServeFault(.badRequest, "ifAbsent doesn't work with file: give length") }
            try cache.put(contentsOfFile: file, forKey: key, options: options)
            return ["stored": true]
        }
        guard request.length != nil else {
            throw ServeFault(.badRequest, "the value is missing: give length, and the bytes after the line")
        }
        if isConditional {
            return ["stored": try cache.putIfAbsent(bytes, forKey: key, options: options)]
        }
        try cache.put(bytes, forKey: key, options: options)
        return ["stored": true]
    }

    private func remove(_ request: ServeRequest) throws -> JSON.Object {
        var removed = 0
        for key in try request.theKeys() where try cache.remove(forKey: key) { removed += 1 }
        return ["removed": removed]
    }

    private func touch(_ request: ServeRequest) throws -> Bool {
        let key = try request.theKey()
        guard let expiration = try request.terms.expiration() else { return try cache.touch(forKey: key) }
        return try cache.setExpiration(expiration, onAccess: request.terms.onAccess, forKey: key)
    }

    /// Removes a selection; throws if none is given, so that an unknown kind of selection never means all keys.
    private func removeAll(_ request: ServeRequest) throws -> JSON.Object {
        var selections: [KeySelection] = request.all == true ? [.all] : []
        if let tag = request.tag { selections.append(.tagged(tag)) }
        if let prefix = request.prefix {
            // An empty prefix would select all keys, which must be requested explicitly.
            if prefix.isEmpty {
                throw ServeFault(.badRequest, "prefix is empty: give a prefix, or \"all\": true")
            }
            selections.append(.prefix(prefix))
        }
        guard selections.count == 1 else {
            let fields = "prefix, tag, or \"all\": true"
            throw ServeFault(.badRequest, "the selection must be one field: give one of \(fields)")
        }
        try cache.removeAll(selections[0])
        return ["done": true]
    }

    // MARK: About the cache

    private func statistics(_ request: ServeRequest) throws -> JSON.Object {
        guard request.scan == true else { return try StatsReading(of: cache).json() }
        let statistics = try cache.directory.statistics()
        let common: JSON.Object = ["path": cache.path, "lastCollection": statistics.lastCollection?.json]
        return JSON.Object(common, statistics.json, statistics.totals?.json ?? [:])
    }

    private var hello: JSON.Object {
        [
            "protocol": Self.protocolVersion, "version": Overview.version, "path": cache.path,
            "longestLine": LineInput.longestLine, "longestValue": longestValue,
        ]
    }
}
