// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

extension SharedCache {
    /// Opens the cache with this name in the user's cache directory: `${XDG_CACHE_HOME:-~/.cache}/NAME`.
    ///
    /// All programs of the user that use this name share it. The directory and its parents are created if they do not exist.
    /// The command-line tool uses the name `diskcache`. Like ``init(at:configuration:)`` this waits for the disk.
    ///
    /// - Parameters:
    ///   - name: the name of the directory: without a slash, and not `.` or `..`. It is also used as
    ///     ``CacheConfiguration/name`` if the configuration has none.
    ///   - configuration: how this process uses the cache.
    /// - Throws: ``CacheError`` like ``init(at:configuration:)``; with the code `invalidArgument` if `name` is not valid, or
    ///   neither `$XDG_CACHE_HOME` nor `$HOME` is an absolute path.
    public static func standard(
        name: String,
        configuration: CacheConfiguration = CacheConfiguration()
    ) throws(CacheError) -> SharedCache {
        try standard(name: name, configuration: configuration) { CurrentProcess.environmentBytes($0) }
    }

    /// Opens the cache with this name in the cache directory that `environment` determines.
    ///
    /// - Parameter environment: returns the bytes of an environment variable; nil if it is not set.
    static func standard(
        name: String,
        configuration: CacheConfiguration,
        _ environment: (String) -> [UInt8]?
    ) throws(CacheError) -> SharedCache {
        let path = try standardPath(of: name, environment)
        var configuration = configuration
        if configuration.name == nil { configuration.name = name }
        return try SharedCache(at: path, configuration: configuration)
    }

    static func standardPath(
        of name: String,
        _ environment: (String) -> [UInt8]?
    ) throws(CacheError) -> String {
        let isName = !name.utf8.contains { $0 == 0 || $0 == UInt8(ascii: "/") }
        guard isName, !["", ".", ".."].contains(name) else {
            let reason = "it is not the name of a directory: use letters and digits, without a slash"
            throw CacheError(.invalidArgument, "open the cache \"\(name)\": \(reason)")
        }
        // The XDG specification requires that a relative path in XDG_CACHE_HOME is ignored.
        for (variable, place) in [("XDG_CACHE_HOME", ""), ("HOME", "/.cache")] {
            guard let base = environment(variable).map({ String(pathBytes: $0) }), base.hasPrefix("/") else {
                continue
            }
            return "\(base)\(place)/\(name)"
        }
        let reason = "neither $XDG_CACHE_HOME nor $HOME is an absolute path: set one, or open it at a path"
        throw CacheError(.invalidArgument, "open the cache \(name): \(reason)")
    }
}
