// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// `diskcache touch`.
enum TouchCommand: Command {
    static let name = "touch"
    static let operands = "KEY"
    static let summary = "count as an access of a key, or give it another expiration"
    static let options = ExpirationOptions.all
    static let details = """
        Without options it is the same as an access: it postpones eviction, and the expiration of a value
        that was stored with --renew. With --ttl or --expires-at the value gets a new expiration; it is not
        renewed by accesses afterwards, unless --renew is given again.

        Exit status: 0 done; 1 a miss; 64 usage; 73 DIR is no directory, or a read-only file system; 77
        permission; 78 the directory is no cache.

        Examples:
          diskcache touch page
          diskcache touch page --ttl 1h
          diskcache touch page --ttl never
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try arguments.expectOperands(1...1, "KEY")
        let key = try arguments.key()
        let expiration = try ExpirationOptions.expiration(arguments)
        let onAccess = ExpirationOptions.accessExtension(arguments) ?? .keep
        guard let cache = try arguments.openExistingCache() else { return .miss }
        guard let expiration else { return try cache.touch(key) ? .done : .miss }
        return try cache.setExpiration(of: key, to: expiration, onAccess: onAccess) ? .done : .miss
    }
}
