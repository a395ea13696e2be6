// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// `diskcache has`.
enum HasCommand: Command {
    static let name = "has"
    static let operands = "KEY"
    static let summary = "report in the exit status whether a key has a value"
    static let optionList = Option.scope
    static let details = """
        Prints nothing, and does not count as an access. has does not read the value, so it misses damage that
        does not change the value's length. Put -- before a key that begins with -.

        Exit status: 0 the key has a value; 1 a get would miss, or there is no cache; 64 usage; 73 not a
        directory; 77 permission; 78 not a cache.

        Example:
          diskcache has page || make_page | diskcache put page --ttl 15m
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let key = try arguments.key()
        guard let cache = try arguments.openExistingCache() else { return .miss }
        return try cache.contains(forKey: key) ? .done : .miss
    }
}
