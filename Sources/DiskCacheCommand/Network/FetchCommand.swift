// SPDX-License-Identifier: Apache-2.0

/// `diskcache fetch`.
enum FetchCommand: Command {
    static let name = "fetch"
    static let operands = "URL…"
    static let summary = "write the content of a URL to standard output, from the cache if HTTP allows it"
    static let optionList = """
        -o, --output FILE…  write the body to FILE, replacing it atomically; one for each URL
        -R, --remote-time  set the time of each FILE to Last-Modified, if the server sends it
        -m, --mode MODE{\(modes)}  how to use stored responses
        --offline  same as --mode offline: never contact the server
        -t, --ttl SPAN  treat the response as fresh for SPAN, overriding the server
        --stale-if-error SPAN  use a stale response for SPAN more if the server is unreachable
        -H, --header LINE…  add a request field: 'Accept: text/html', or the lines of @FILE
        --digest DIGEST  fail unless the body has this SHA-256
        --max-size SIZE  fail if the body is larger than SIZE
        --time-limit SPAN  fail if the download takes longer than SPAN
        --retries NUMBER  retry up to NUMBER times after a network error (default 2)
        --tag TAG…  attach TAG to the response, for `rm --tag`
        --cacert FILE  trust the certificate authorities in FILE (PEM) instead of the system's
        --cert FILE  client certificate (PEM)
        --key FILE  private key for --cert, if it is in another file
        -i, --include  write the head of the response before the body, for any status
        -v, --verbose  report on standard error how each URL was answered (Cache-Status, RFC 9211)
        -p, --parallel NUMBER  run up to NUMBER downloads in parallel (default 1)
        \(Option.json)
        """
    static let exclusive = [["mode", "offline"]]
    /// The values of `--mode`, which are the raw values of `FetchMode`; `diskcache` does not link that type.
    static let modes = "default, revalidate, reload, only-if-cached, cache-first, offline"
    static let details = """
        fetch is a private HTTP cache (RFC 9111). It uses a fresh response without contacting the server, and
        revalidates a stale one (ETag, Last-Modified); a 304 renews the response without a transfer. One
        process downloads a URL; other processes that fetch it meanwhile wait, and get the same bytes. Any
        process can resume an interrupted download. Creates the directory if it is missing.

        Modes: default; revalidate: always ask the server, except for immutable responses; reload: download
        again; only-if-cached: a fresh response or a miss; cache-first: any stored response, or else ask the
        server; offline: any stored response or a miss. After the body is written, a renewal in the background
        (stale-while-revalidate) can take up to 10 s more.

        fetch writes the body after it is complete and checked. Without -o, the bodies go to standard output
        in the order of the URLs. fetch follows redirects. If the status is 300 or above, it writes the body
        only with --include, and at most 1 MiB of it. With --json, a body goes to its FILE or nowhere.

        Stored responses have separate keys, which get, put and other commands with a KEY can't access.
        `diskcache ls --prefix 'http GET '` lists them; `diskcache rm --prefix 'http GET URL'` removes those
        whose URL begins with URL.

        Cookie and Authorization are sent but never stored; Set-Cookie is not stored either. `--header @FILE`
        keeps fields out of the list of processes; @- is standard input. http_proxy, https_proxy and no_proxy
        determine the proxy. Certificate authorities come from --cacert, else SSL_CERT_FILE, else the system.
        Responses fetched with --cert are stored separately for each certificate.

        -v prints hit (fresh), stale, revalidated, fetched, joined (another process fetched it) or miss (no
        usable response is stored, and the server must not be asked), then the field Cache-Status: fwd= is the
        reason for the request, fwd-status= the server's status, ttl= the remaining time to live in seconds.

        JSON: one object per URL, each on its own line, in the order of the URLs: url; finalURL (after
        redirects), status, fields (each with name and value), length (bytes of the body), digest, age
        (seconds), outcome (hit, stale, revalidated, fetched, joined, miss), cacheStatus, file; error, if the
        URL failed. Without a response, there are only url and error. Fields that do not apply are omitted.

        Exit status: 0 done; 1 the server has no such resource (404, 410), or no usable response is stored and
        the server must not be asked; 64 usage; 65 the body is too large, or has another SHA-256; 69 the
        server can't be reached or failed, or libcurl or diskcache-net is missing; 73 can't create the
        directory, or no space; 74 the cache can't be read, or the output can't be written; 75 timed out, or
        the server asks to try later (429, 503); 77 the server denies access (401, 403), or permission is
        missing here; 78 not a cache. With several URLs, all are fetched, and the status is that of the first
        failure.

        Examples:
          diskcache fetch https://example.org/rates.json
          diskcache fetch --ttl 1h --stale-if-error 1d -o rates.json https://example.org/rates.json
          diskcache fetch -v --digest "$sum" -o tool.tar.gz https://example.org/tool.tar.gz
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus { throw arguments.restartWithNetwork() }
}
