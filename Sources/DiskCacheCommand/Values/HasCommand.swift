// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// `diskcache has`.
enum HasCommand: Command {
    static let name = "has"
    static let operands = "KEY"
    static let summary = "tell by the exit status whether a key has a value"
    static let optionList = Option.scope
    static let details = """
        Prints nothing, doesn't count as an access, and doesn't read the value, so damage that doesn't change its
        length goes unnoticed. A key that begins with - needs -- before it.

        Exit status: 0 it has; 1 get would be a miss, or there is no cache; 64 usage; 73 not a directory;
        77 permission; 78 not a cache.

        Example:
          diskcache has page || make_page | diskcache put page --ttl 15m
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let key = try arguments.key()
        guard let cache = try arguments.openExistingCache() else { return .miss }
        return try cache.contains(forKey: key) ? .done : .miss
    }
}
