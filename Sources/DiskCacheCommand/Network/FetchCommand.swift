// SPDX-License-Identifier: Apache-2.0

/// `diskcache fetch`.
enum FetchCommand: Command {
    static let name = "fetch"
    static let operands = "URL…"
    static let summary = "write the content of a URL to standard output, from the cache if HTTP allows it"
    static let optionList = """
        -o, --output FILE…  write the body to FILE, replacing it in one step; one for each URL
        -R, --remote-time  give each FILE the time in Last-Modified, if the server states one
        -m, --mode MODE{\(modes)}  how stored responses are used
        --offline  as --mode offline: never contact the server
        -t, --ttl SPAN  treat the response as fresh for SPAN, overriding the server
        --stale-if-error SPAN  use it for SPAN more if the server is unreachable
        -H, --header LINE…  add a request field, as 'Accept: text/html', or the lines of @FILE
        --digest DIGEST  fail unless this is the body's SHA-256
        --max-size SIZE  fail if the body is longer
        --time-limit SPAN  fail if it takes longer
        --retries NUMBER  how often to retry after a network error (default 2)
        --tag TAG…  a word to remove it by
        --cacert FILE  trust the authorities in FILE (PEM) instead of the system's
        --cert FILE  client certificate (PEM)
        --key FILE  the key of --cert, if it is in another file
        -i, --include  write the head of the response before the body, for any status
        -v, --verbose  report on standard error how each URL was answered, as Cache-Status (RFC 9211)
        -p, --parallel NUMBER  up to NUMBER parallel downloads (default 1)
        \(Option.json)
        """
    static let exclusive = [["mode", "offline"]]
    /// The values of `--mode`: the raw values of `FetchMode`, which `diskcache` does not link.
    static let modes = "default, revalidate, reload, only-if-cached, cache-first, offline"
    static let details = """
        A private HTTP cache (RFC 9111): a fresh response is used without contacting the server, a stale one is
        revalidated (ETag, Last-Modified), and a 304 renews it without a transfer. One process downloads a URL;
        all others that want it wait and get the same bytes. Any process resumes an interrupted download.
        Creates the directory if it is missing.

        Modes: default; revalidate: always ask the server, except for immutable responses; reload: download
        again; only-if-cached: a fresh response or a miss; cache-first: any stored response, or else ask;
        offline: any stored response or a miss. A renewal in the background (stale-while-revalidate) may take 10 s
        more after the body was written.

        The body is written once it is complete and checked. Without -o the bodies go to standard
        output, in the order of the URLs. The body of anything but a success (a status of 300 and above; redirects
        are followed) is written with --include only, and no more than 1 MiB of it. With --json a body goes to its
        FILE or nowhere.

        Stored responses have separate keys, which get, put and other commands with a KEY can't name.
        `diskcache ls --prefix 'http GET '` lists them, `diskcache rm --prefix 'http GET URL'` removes one.

        Cookie and Authorization are sent and never stored; Set-Cookie is not stored either. `--header @FILE`
        keeps fields from the list of processes; @- is standard input. A proxy is taken from http_proxy,
        https_proxy and no_proxy, authorities from --cacert, SSL_CERT_FILE, or else the system's. Responses
        fetched with a --cert are stored separately for each certificate.

        -v prints hit (fresh), stale, revalidated, fetched, joined (another process has fetched it) or miss (no
        usable response is stored, and the server may not be asked), then the field Cache-Status: fwd= the reason
        of the request, fwd-status= the server's status, ttl= the seconds that are left.

        JSON: an object for each URL on a line of its own, in their order: url; finalURL (after redirects),
        status, fields (each with name and value), length (bytes of the body), digest, age (seconds), outcome
        (hit, stale, revalidated, fetched, joined, miss), cacheStatus, file; error, if it failed, which without an
        answer is all beside url. What does not apply is left out.

        Exit status: 0 done; 1 the server has no such resource (404, 410), or no usable response is stored and
        the server may not be asked; 64 usage; 65 the body is too long, or has another SHA-256; 69 the server
        can't be reached or failed, or libcurl or diskcache-net is missing; 73 can't create the directory, or no
        space; 74 the cache can't be read, or the output not written; 75 not in time, or the server asks to try
        later (429, 503); 77 the server refuses it (401, 403), or permission is missing here; 78 not a cache. Of
        several URLs all are fetched, and the first that failed counts.

        Examples:
          diskcache fetch https://example.org/rates.json
          diskcache fetch --ttl 1h --stale-if-error 1d -o rates.json https://example.org/rates.json
          diskcache fetch -v --digest "$sum" -o tool.tar.gz https://example.org/tool.tar.gz
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus { throw arguments.restartWithNetwork() }
}
