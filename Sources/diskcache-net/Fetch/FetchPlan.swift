// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCacheCommand
import DiskCacheHTTP
import Platform

/// What a command line of `fetch` requests.
struct FetchPlan {
    /// A request for each URL, without a destination.
    let requests: [FetchRequest]
    /// The file for each request's body; nil for standard output.
    let files: [String?]
    /// The maximum number of concurrent downloads.
    let parallel: Int
    let options: HTTPCacheOptions
    let includesHead: Bool
    /// Whether files get the modification time that the server states.
    let keepsTime: Bool
    let isVerbose: Bool
    let isJSON: Bool

    init(_ arguments: Arguments) throws(Failure) {
        var terms = FetchRequest("")
        terms.mode = try arguments.value("mode", as: FetchText.mode) ?? .standard
        if arguments.has("offline") { terms.mode = .offline }
        for word in arguments.all("header") { terms.fields += try FetchText.fields(word) }
        terms.timeToLive = try arguments.value("ttl", as: Quantity.duration)
        terms.staleIfError = try arguments.value("stale-if-error", as: Quantity.duration)
        terms.digest = try arguments.value("digest", as: FetchText.digest)
        terms.maximumSize = try arguments.value("max-size", as: Quantity.size)?.bytes
        terms.timeLimit = try arguments.value("time-limit", as: Quantity.duration)
        if let count = try arguments.count("retries", in: 0...100) { terms.retries = count }
        terms.tags = try arguments.tags()
        var requests: [FetchRequest] = []
        for word in arguments.operands {
            var request = terms
            request.url = try FetchText.url(word)
            requests.append(request)
        }
        self.requests = requests
        let files = arguments.all("output")
        if files.contains("") { throw .usage("fetch: --output: the file name is empty: give FILE") }
        guard files.isEmpty || files.count == requests.count else {
            let words = "\(files.count) for \(requests.count) URLs: give one for each, or none"
            throw .usage("fetch: --output: \(words)")
        }
        if terms.digest != nil, requests.count > 1 {
            throw .usage("fetch: --digest needs a single URL: fetch the others separately")
        }
        var places = [String?](repeating: nil, count: requests.count)
        for (index, file) in files.enumerated() where file != "-" { places[index] = file }
        self.files = places
        parallel = try arguments.count("parallel", in: 1...64) ?? 1
        options = try HTTPCacheOptions(arguments)
        includesHead = arguments.has("include")
        keepsTime = arguments.has("remote-time")
        if keepsTime, places.allSatisfy({ $0 == nil }) {
            throw .usage("fetch: --remote-time needs a file: give --output too")
        }
        isVerbose = arguments.has("verbose")
        isJSON = arguments.has("json")
    }

    /// Returns the direct destination of a request's body.
    ///
    /// Returns nil if the body must first go to a temporary file, because its head, another body, or the progress line
    /// must be written before it.
    func target(_ index: Int) -> FetchRequest.Output? {
        if isJSON, files[index] == nil { return .file("/dev/null") }
        if includesHead { return nil }
        if let file = files[index] { return .file(file) }
        let isDirect = parallel == 1 && !Terminal.isInteractive(Terminal.standardOutput)
        return isDirect ? .descriptor(Terminal.standardOutput) : nil
    }
}

extension HTTPCacheOptions {
    /// Creates the options from the command line; throws if one of the files can't be read.
    fileprivate init(_ arguments: Arguments) throws(Failure) {
        self.init()
        authorityFile = try arguments.value("cacert", as: FetchText.file)
        certificateFile = try arguments.value("cert", as: FetchText.file)
        certificateKeyFile = try arguments.value("key", as: FetchText.file)
        if certificateKeyFile != nil, certificateFile == nil {
            throw .usage("fetch: --key needs a certificate: give --cert too")
        }
    }
}
