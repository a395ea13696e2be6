// SPDX-License-Identifier: Apache-2.0

/// `diskcache push`.
enum PushCommand: Command {
    static let name = "push"
    static let operands = "[KEY]…"
    static let summary = "send values to the remote stores"
    static let optionList = """
        --prefix TEXT…  all keys that begin with TEXT
        --tag TAG…  all values with this tag
        \(Option.scope)
        \(Option.json)
        """
    static let details = """
        If config.json names a store that this machine may write to, new values are sent there in the
        background. A list on disk, which outlives every process, contains the values that are not sent yet.
        push waits until the list is empty. With KEY, --prefix or --tag, it first adds these values to the
        list, for example older ones. Values larger than remote.maximumSize or smaller than remote.minimumSize
        are not sent. Put -- before a key that begins with -.

        With --prefix or --tag, push also sends a list of the keys, so that pull with the same option finds
        them on other machines. The list is stored here under a key that begins with diskcache:list. It omits
        keys stored only as digests (longer than 1 KiB, or on request), and values that stay on this machine,
        such as downloads.

        JSON: keys, bytes (of the values that this process has sent), missing (keys without a value), dropped
        (refused by a server), waiting (not sent yet).

        Exit status: 0 everything is sent; 1 one of the keys has no value; 64 usage; 69 the stores can't be
        reached, or refuse the values; 75 nothing could be sent for half a minute; 77 permission, or
        remote.mode is read; 78 not a cache, or config.json names no store.

        Examples:
          diskcache push
          diskcache push --prefix thumbs/
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus { throw arguments.restartWithNetwork() }
}
