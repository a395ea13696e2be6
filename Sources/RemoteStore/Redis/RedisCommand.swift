// SPDX-License-Identifier: Apache-2.0

/// Redis commands: arrays of bulk strings.
enum RedisCommand {
    /// Encodes a command and its arguments, which may contain any bytes.
    static func encode(_ arguments: [[UInt8]]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(arguments.reduce(16) { $0 + $1.count + 16 })
        bytes.append(contentsOf: "*\(arguments.count)\r\n".utf8)
        for argument in arguments {
            bytes.append(contentsOf: "$\(argument.count)\r\n".utf8)
            bytes.append(contentsOf: argument)
            bytes.append(contentsOf: "\r\n".utf8)
        }
        return bytes
    }

    static func authenticate(user: String? = nil, password: String) -> [UInt8] {
        encode(["AUTH"].map(bytes) + (user.map { [bytes($0)] } ?? []) + [bytes(password)])
    }

    static func select(database: Int) -> [UInt8] {
        encode(["SELECT", String(database)].map(bytes))
    }

    static func get(_ key: [UInt8]) -> [UInt8] {
        encode([bytes("GET"), key])
    }

    /// Requests the first `count` bytes of a value; the reply is an empty string if there is none.
    static func get(_ key: [UInt8], first count: Int) -> [UInt8] {
        encode([bytes("GETRANGE"), key, bytes("0"), bytes(String(count - 1))])
    }

    /// Stores a value.
    ///
    /// - Parameter lifetime: The time to live in milliseconds, at least 1; nil for no limit.
    static func set(_ key: [UInt8], _ value: [UInt8], lifetime: Int64? = nil) -> [UInt8] {
        let terms = lifetime.map { ["PX", String(max(1, $0))].map(bytes) } ?? []
        return encode([bytes("SET"), key, value] + terms)
    }

    /// Makes the next transaction of the connection fail if the value of the key changes before it.
    static func watch(_ key: [UInt8]) -> [UInt8] {
        encode([bytes("WATCH"), key])
    }

    static let unwatch = encode([bytes("UNWATCH")])
    /// Returns the server's time: seconds since the beginning of 1970, and microseconds.
    static let time = encode([bytes("TIME")])
    /// Begins a transaction, and carries it out; the reply of the latter is null if a watched value has changed.
    static let multi = encode([bytes("MULTI")])
    static let exec = encode([bytes("EXEC")])

    static func delete(_ key: [UInt8]) -> [UInt8] {
        encode([bytes("DEL"), key])
    }

    private static func bytes(_ text: String) -> [UInt8] {
        Array(text.utf8)
    }
}
