// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// `diskcache incr`.
enum IncrementCommand: Command {
    static let name = "incr"
    static let operands = "KEY [NUMBER]"
    static let summary = "add to the number stored under a key, and print the sum"
    static let optionList = """
        \(ExpirationOptions.list)
        \(Option.scope)
        """
    static let exclusive = ExpirationOptions.exclusive
    static let details = """
        Adds NUMBER (default 1) and stores the sum atomically, however many processes do so at the same time.
        A key without a value counts as 0. The value is a number in decimal digits: `get` prints it, and
        `echo 5 | diskcache put KEY` stores it. Put -- before a NUMBER that begins with -. Creates the
        directory if it is missing.

        The options apply only to a new number. An existing number keeps its expiration and everything else
        that was stored with it, so --ttl 1m counts a minute from the first call. Like any value, a number can
        be evicted; it then starts again at 0. Without --ttl and --expires-at, a new number expires after
        $DISKCACHE_TTL, or never if that is not set.

        Exit status: 0 done; 64 usage, the value is not a number, or the sum exceeds 64 bits; 73 no space, not
        a directory, or the directory can't be created or written; 75 timed out waiting for a lock, or for
        space within the limits; 77 permission; 78 not a cache.

        Examples:
          diskcache incr visits
          test "$(diskcache incr requests --ttl 1m)" -le 100 || exit 1
          diskcache incr stock -- -5
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let key = try arguments.key()
        let amount = try number(arguments.operands.dropFirst().first ?? "1")
        let expiration = try ExpirationOptions.expiration(arguments) { () throws(Failure) in
            try ExpirationOptions.usual()
        }
        let terms = PutOptions(expires: expiration, onAccess: arguments.has("renew") ? .renew : nil)
        let cache = try arguments.openCache()
        try Output.print("\(try cache.increment(forKey: key, by: amount, options: terms))\n")
        return .done
    }

    /// Parses a whole number with an optional sign.
    private static func number(_ text: String) throws(Failure) -> Int {
        if let number = Int(text) { return number }
        throw .usage("incr: invalid number '\(text)': write it like 1 or -5, within 64 bits")
    }
}
