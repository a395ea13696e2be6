// SPDX-License-Identifier: Apache-2.0

import Platform

/// The manual page, generated from the help texts.
enum Manual {
    /// Returns the page for these commands.
    static func page(of commands: [any Command.Type]) -> String {
        let lines = [
            // Without a date, so that the same sources produce the same page.
            ".TH DISKCACHE 1 \"\" \(quoted("diskcache \(Overview.version)")) \(quoted("User Commands"))",
            // Without hyphenation, so that searches find words. The macros restore it from HY at each heading.
            ".nr HY 0", ".nh", ".ad l", ".SH NAME",
            Roff.escaped("diskcache") + " \\- "
                + Roff.escaped("a cache directory for all processes on a machine"),
            ".SH SYNOPSIS", synopsis("diskcache", ["[--dir DIR]", "COMMAND", "[OPTION]…"]),
        ]
        let sections = [
            section(
                "DESCRIPTION",
                Roff.paragraphs(Overview.promise + "\n\n" + Overview.conventions)
            ),
            section(
                "OPTIONS",
                [".PP", Roff.prose("These precede the command; `--dir` and `--help` can also follow it:")]
                    + Overview.options.flatMap(item)
            ),
            section("COMMANDS", commands.flatMap { command($0) }),
            section("ENVIRONMENT", items(environment, Roff.bold)),
            section("FILES", items(files, Roff.italic)),
            section("EXIT STATUS", items(statuses, Roff.bold)),
            section("EXAMPLES", Roff.paragraphs(examples)),
            section("SEE ALSO", [seeAlso]),
        ]
        return (lines + sections.flatMap(\.self)).joined(separator: "\n") + "\n"
    }

    private static func section(_ title: String, _ lines: [String]) -> [String] {
        [".SH \(quoted(title))"] + lines
    }

    private static func quoted(_ text: String) -> String { "\"\(Roff.escaped(text))\"" }

    private static func synopsis(_ name: String, _ words: [String]) -> String {
        ([Roff.bold(name)] + words.map(Roff.escaped)).joined(separator: " ")
    }

    private static func command(_ command: any Command.Type) -> [String] {
        let words = ["[OPTION]…", command.operands].filter { !$0.isEmpty }
        return [".SS \(quoted(command.name))", synopsis("diskcache \(command.name)", words)]
            + Roff.paragraphs(command.summary.prefix(1).uppercased() + command.summary.dropFirst() + ".")
            + command.options.flatMap(item)
            + Roff.paragraphs(command.details)
    }

    private static func item(_ option: Option) -> [String] {
        let names = option.spellings.map(Roff.bold).joined(separator: ", ")
        return Roff.item(names + option.value(Roff.italic), option.help)
    }

    // MARK: Texts that no command's help contains

    private static let environment = """
        DISKCACHE_DIR The cache directory, unless `--dir` is given.
        DISKCACHE_SCOPE The default of `--scope`, for all commands that have this option.
        DISKCACHE_TTL The default of `--ttl`, for `put`, `incr` and `run`.
        DISKCACHE_METADATA `automatic` (default) or `sidecar`: metadata in files, not in extended attributes.
        XDG_CACHE_HOME The parent of the default directory, if it is an absolute path; otherwise ~/.cache.
        DISKCACHE_REMOTE_CREDENTIALS Lines `host = user:password` for the servers in config.json.
        http_proxy The proxy of `fetch`, as in curl(1); likewise https_proxy, all_proxy and no_proxy.
        SSL_CERT_FILE A file with the certificate authorities for https servers, instead of the system's.
        HOME The directory that contains .cache.
        NO_COLOR If set and not empty, disables colors, even on a terminal.
        """

    private static let files = """
        entries/ A file for each key, named by its SHA-256; the extended attribute user.dc has the metadata.
        objects/ A file for each value, named by the SHA-256 of its bytes; equal values share one.
        control Memory that all processes map: generations of keys, a filter of existing keys, counters.
        locks/ Lock files for flock(2). Never delete one.
        tmp/ Temporary files, on file systems without unnamed files (O_TMPFILE).
        config.json The limits of the directory, and the servers of its remote stores.
        candidates The keys to evict next, if the size is limited.
        outbox Changes that are not sent yet to the servers in config.json.
        versions The order of changes on several machines, if they share remote stores.
        rules Removals and expirations of many values at once.
        events The log of removals, if it is enabled; its older half is events.1.
        format The version of the format, "diskcache 1".
        README A description of the directory.
        CACHEDIR.TAG A tag that tells backup tools to skip the directory.
        """

    /// Returns one line per exit status, from the overview's text "0 done; 1 a miss".
    private static var statuses: String {
        let text = Overview.statuses.split(separator: "\n").joined(separator: " ")
        return text.split(separator: "; ").map { "\($0)." }.joined(separator: "\n")
    }

    /// Returns an item for each line, which consists of a name and its meaning.
    private static func items(_ lines: String, _ style: (String) -> String) -> [String] {
        lines.split(separator: "\n").flatMap { line in
            let words = line.split(separator: " ", maxSplits: 1).map(String.init)
            return Roff.item(style(words[0]), words[1])
        }
    }

    private static let examples = """
        A value that expires after a quarter of an hour:

          diskcache get page -o page.html ||
            { curl -sfo page.html https://example.org/ && diskcache put page page.html --ttl 15m; }

        The output of a command that runs once for all processes:

          diskcache run --ttl 1h -- curl -sf https://example.org/rates.json

        A download that is repeated only when it is no longer fresh:

          diskcache fetch -o rates.json --stale-if-error 1d https://example.org/rates.json

        A separate directory, kept small by cron(8):

          export DISKCACHE_DIR=/var/cache/thumbs
          diskcache put thumbs/17 thumb.png --ttl 7d --renew --tag user:1
          diskcache rm --prefix thumbs/
          diskcache config set max-size 2G

        In the crontab, silent if another process is already collecting (status 75):

          PATH=/usr/local/bin:/usr/bin:/bin
          */15 * * * *  e=$(diskcache --dir /var/cache/thumbs gc --no-wait 2>&1 >/dev/null) || [ $? -eq 75 ] || echo "$e"

        Contents, statistics and problems:

          diskcache ls --long --sort size --limit 10
          diskcache stats
          diskcache doctor
        """

    private static let seeAlso = [
        "cron(8)", "curl(1)", "flock(2)", "sha256sum(1)", "systemd.timer(5)", "tar(1)", "xattr(7)",
    ]
    .map { "\(Roff.bold(String($0.dropLast(3))))\($0.suffix(3))" }.joined(separator: ",\n")
}
