// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// `diskcache fetch`.
enum FetchCommand: Command {
    static let name = "fetch"
    static let operands = "URL…"
    static let summary = "write what is at a URL to standard output, from the cache where HTTP allows that"
    static let needsNetwork = true
    static let optionList = """
        -o, --output FILE…  write the body to FILE, replacing it in one step; one for each URL
        -R, --remote-time  give each FILE the time in Last-Modified, if the server states one
        -m, --mode MODE{\(FetchText.modes)}  what may be answered from the cache
        --offline  as --mode offline: whatever is stored
        -t, --ttl SPAN  take it for fresh for SPAN, whatever the server says
        --stale-if-error SPAN  for so long after that it still does, where the server can't be asked
        -H, --header LINE…  send this field, as 'Accept: text/html', or the lines of @FILE
        --digest DIGEST  fail unless this is the body's SHA-256
        --max-size SIZE  fail if the body is longer
        --time-limit SPAN  fail if it takes longer
        --retries NUMBER  how often to try again after an error of the network; 2 by default
        --tag TAG…  a word to remove it by
        --cacert FILE  trust the authorities in FILE (PEM) instead of the system's
        --cert FILE  show the certificate in FILE (PEM) to servers that ask for one
        --key FILE  the key of --cert, if it is in another file
        -i, --include  write the head of the response before the body, whatever the status
        -v, --verbose  say on standard error what was done, in the words of Cache-Status (RFC 9211)
        -p, --parallel NUMBER  fetch so many at once; 1 by default
        \(Option.json)
        """
    static let exclusive = [["mode", "offline"]]
    static let details = """
        A private cache as RFC 9111 has it: what is fresh is not asked for, what is stale is validated (ETag,
        Last-Modified), and a 304 renews it without a byte. One process downloads a URL, and all others that
        want it wait for that one and get the same bytes. A download that broke off is resumed, by whichever
        process. Creates the directory if it is missing.

        Modes: default; revalidate: ask the server in any case, but for what it has called immutable; reload:
        download it anew; only-if-cached: what is fresh, or nothing; cache-first: whatever is stored, or else ask;
        offline: whatever is stored, or nothing. What is renewed in the background (stale-while-revalidate) may
        take 10 s more after the body was written.

        Nothing is written before the whole body is there and checked. Without -o the bodies go to standard
        output, in the order of the URLs. The body of anything but a success (a status of 300 and above; redirects
        are followed) is written with --include only, and no more than 1 MiB of it. With --json a body goes to its
        FILE or nowhere.

        What is stored has keys of its own, which get, put and other commands with a KEY don't name.
        `diskcache ls --prefix 'http GET '` lists it, `diskcache rm --prefix 'http GET URL'` removes it.

        Cookie and Authorization are sent and never stored, Set-Cookie only encrypted, with the key in
        ${XDG_DATA_HOME:-~/.local/share}/diskcache/key. `--header @FILE` keeps fields from the list of
        processes; @- is standard input. A proxy is taken from http_proxy, https_proxy and no_proxy,
        authorities from --cacert, SSL_CERT_FILE, or else the system's. What was fetched with a --cert is stored
        apart, for those who have the same.

        -v says hit (fresh), stale, revalidated, fetched, joined (another process has fetched it) or miss
        (nothing is stored that will do, and nobody was to be asked), and behind it the field Cache-Status: fwd= is why the server was asked, fwd-status= what it said, ttl= how
        many seconds are left.

        \(Fetched.help)

        Exit status: 0 done; 1 the server has no such thing (404, 410), or nothing is stored and nobody may be
        asked; 64 usage; 65 the body is too long, or has another SHA-256; 69 the server can't be reached or
        failed, or libcurl or diskcache-net is missing; 73 can't create the directory, or no space; 74 the
        cache can't be read, or the output not written; 75 not in time, or the server asks to try later (429,
        503); 77 the server refuses it (401, 403), or permission is missing here; 78 not a cache. Of several
        URLs all are fetched, and the first that failed counts.

        Examples:
          diskcache fetch https://example.org/rates.json
          diskcache fetch --ttl 1h --stale-if-error 1d -o rates.json https://example.org/rates.json
          diskcache fetch -v --digest "$sum" -o tool.tar.gz https://example.org/tool.tar.gz
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let plan = try FetchPlan(arguments)
        guard let network = arguments.network else { throw NetworkFailure(.missing, "fetch: no network") }
        // Other machines are not queried: each response is valid on its own terms, which a server may have renewed.
        let cache = try arguments.openCache()
        return try FetchRun(plan, network.downloads(in: cache, plan.security), directory: cache.path).run()
    }
}

/// The request of a command line of `fetch`.
struct FetchPlan {
    let orders: [FetchOrder]
    /// The file for each order's body; nil for standard output.
    let files: [String?]
    /// The maximum number of concurrent downloads.
    let parallel: Int
    let security: FetchSecurity
    let includesHead: Bool
    /// Whether files get the server's modification time.
    let keepsTime: Bool
    let isVerbose: Bool
    let isJSON: Bool

    init(_ arguments: Arguments) throws(Failure) {
        var terms = FetchOrder("")
        terms.mode = try arguments.value("mode", as: FetchText.mode) ?? .standard
        if arguments.has("offline") { terms.mode = .offline }
        for word in arguments.all("header") { terms.fields += try FetchText.fields(word) }
        terms.timeToLive = try arguments.value("ttl", as: Quantity.duration)
        terms.staleIfError = try arguments.value("stale-if-error", as: Quantity.duration)
        terms.digest = try arguments.value("digest", as: FetchText.digest)
        terms.maximumSize = try arguments.value("max-size", as: Quantity.size)?.bytes
        terms.timeLimit = try arguments.value("time-limit", as: Quantity.duration)
        terms.retries = try arguments.count("retries", in: 0...100)
        terms.tags = try arguments.tags()
        var orders: [FetchOrder] = []
        for word in arguments.operands {
            var order = terms
            order.url = try FetchText.url(word)
            orders.append(order)
        }
        self.orders = orders
        let files = arguments.all("output")
        if files.contains("") { throw .usage("fetch: --output: the file name is empty: give FILE") }
        guard files.isEmpty || files.count == orders.count else {
            let words = "\(files.count) for \(orders.count) URLs: give one for each, or none"
            throw .usage("fetch: --output: \(words)")
        }
        if terms.digest != nil, orders.count > 1 {
            throw .usage("fetch: --digest is for one URL: fetch the others with another call")
        }
        var places = [String?](repeating: nil, count: orders.count)
        for (index, file) in files.enumerated() where file != "-" { places[index] = file }
        self.files = places
        parallel = try arguments.count("parallel", in: 1...64) ?? 1
        security = try FetchSecurity(arguments)
        includesHead = arguments.has("include")
        keepsTime = arguments.has("remote-time")
        if keepsTime, places.allSatisfy({ $0 == nil }) {
            throw .usage("fetch: --remote-time is for files: give --output, too")
        }
        isVerbose = arguments.has("verbose")
        isJSON = arguments.has("json")
    }

    /// Returns the direct destination of an order's body; nil if it must first go to a temporary file, because its head,
    /// another body, or the progress line must come before it.
    func target(_ index: Int) -> FetchTarget? {
        if isJSON, files[index] == nil { return .file("/dev/null") }
        if includesHead { return nil }
        if let file = files[index] { return .file(file) }
        let isDirect = parallel == 1 && !Terminal.isInteractive(Terminal.standardOutput)
        return isDirect ? .descriptor(Terminal.standardOutput) : nil
    }
}

extension FetchSecurity {
    /// Creates the settings of the command line; throws if one of the files can't be read.
    fileprivate init(_ arguments: Arguments) throws(Failure) {
        authorityFile = try arguments.value("cacert", as: FetchText.file)
        certificateFile = try arguments.value("cert", as: FetchText.file)
        certificateKeyFile = try arguments.value("key", as: FetchText.file)
        if certificateKeyFile != nil, certificateFile == nil {
            throw .usage("fetch: --key is that of a certificate: give --cert, too")
        }
    }
}
