// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// `diskcache touch`.
enum TouchCommand: Command {
    static let name = "touch"
    static let operands = "KEY"
    static let summary = "mark a key as used, or change its expiration"
    static let optionList = ExpirationOptions.list
    static let exclusive = ExpirationOptions.exclusive
    static let details = """
        Without options, counts as an access: it postpones eviction, and the expiration of a value that was
        stored with --renew. With --ttl or --expires-at, sets a new expiration, which accesses don't renew
        unless --renew is given again.

        Exit status: 0 done; 1 a miss; 64 usage; 73 not a directory, or a read-only file system;
        77 permission; 78 not a cache.

        Examples:
          diskcache touch page
          diskcache touch page --ttl 1h
          diskcache touch page --ttl never
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let key = try arguments.key()
        let expiration = try ExpirationOptions.expiration(arguments)
        let onAccess = arguments.has("renew") ? Expiration.OnAccess.renew : .keep
        guard let cache = try arguments.openExistingCache() else { return .miss }
        guard let expiration else { return try cache.touch(forKey: key) ? .done : .miss }
        return try cache.setExpiration(expiration, onAccess: onAccess, forKey: key) ? .done : .miss
    }
}
