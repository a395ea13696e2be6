// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// `diskcache touch`.
enum TouchCommand: Command {
    static let name = "touch"
    static let operands = "[KEY]"
    static let summary = "mark a key as used, or change its expiration"
    static let optionList = """
        \(ExpirationOptions.list)
        --soft[=SPAN]  expire the value now; get --stale still returns it for SPAN
        --prefix TEXT…  with --soft, instead of KEY: all keys that begin with TEXT
        --tag TAG…  with --soft, instead of KEY: all values with this tag
        \(Option.scope)
        """
    static let exclusive = ExpirationOptions.exclusive + ["ttl", "expires-at", "renew"].map { ["soft", $0] }
    static let details = """
        Without options, touch counts as an access: it postpones eviction and, if the value was stored with
        --renew, its expiration. With --ttl or --expires-at, touch sets a new expiration, which accesses renew
        only if --renew is given again.

        --soft makes the value stale: gets miss, but readers that accept stale values still get it until it is
        stored again, for at most SPAN. Without SPAN, that is the stale period with which it was stored
        (`put --stale`). With --prefix or --tag, this takes one step for any number of keys. --prefix matches
        the full key, including the scope.

        Exit status: 0 done, with --prefix and --tag even if no key matched; 1 a miss, or there is no cache;
        64 usage; 73 not a directory, or a read-only file system; 77 permission; 78 not a cache.

        Examples:
          diskcache touch page
          diskcache touch page --ttl 1h
          diskcache touch --soft=1d --tag user:1
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        if arguments.has("soft") { return try expire(arguments) }
        for option in ["prefix", "tag"] where arguments.has(option) {
            throw Failure.usage("touch: --\(option) works only with --soft: give --soft too")
        }
        try arguments.expectOperands(1...1, "KEY")
        let key = try arguments.key()
        let expiration = try ExpirationOptions.expiration(arguments)
        let onAccess = arguments.has("renew") ? Expiration.OnAccess.renew : .keep
        guard let cache = try arguments.openExistingCache() else { return .miss }
        guard let expiration else { return try cache.touch(forKey: key) ? .done : .miss }
        return try cache.setExpiration(expiration, onAccess: onAccess, forKey: key) ? .done : .miss
    }

    /// Expires one key or the selected keys; their values remain available as stale values.
    private static func expire(_ arguments: Arguments) throws -> ExitStatus {
        let isAsStored = arguments.value("soft") == ""
        let span = try isAsStored ? nil : arguments.value("soft", as: Quantity.duration)
        let selections = try SelectionOptions.selections(arguments)
        guard selections.isEmpty else {
            try arguments.expectOperands(0...0, "either KEY, or --prefix and --tag")
            guard let cache = try arguments.openExistingCache() else { return .miss }
            for selection in selections { try cache.expireAll(selection, staleFor: span) }
            return .done
        }
        try arguments.expectOperands(1...1, "KEY")
        let key = try arguments.key()
        guard let cache = try arguments.openExistingCache() else { return .miss }
        let isThere = try cache.setExpiration(.expired, onAccess: .keep, staleFor: span, forKey: key)
        return isThere ? .done : .miss
    }
}
