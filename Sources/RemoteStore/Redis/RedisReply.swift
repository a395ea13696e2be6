// SPDX-License-Identifier: Apache-2.0

/// An answer of Redis, in either version of its protocol.
package enum RedisReply: Sendable, Equatable {
    /// One line, such as `OK`.
    case simple([UInt8])
    /// One line, or more in version 3, that begins with a word such as `ERR`.
    case error([UInt8])
    case integer(Int64)
    case bulk([UInt8])
    case null
    case boolean(Bool)
    case double(Double)
    /// Its digits.
    case bigNumber([UInt8])
    /// Arrays and sets.
    case array([RedisReply])
    /// Keys and values by turns.
    case map([RedisReply])
    /// What the server sends without being asked.
    case push([RedisReply])
}

extension RedisReply {
    /// The first word of an error, such as `NOAUTH` or `OOM`; nil: it is none.
    package var errorCode: String? {
        guard case .error(let bytes) = self else { return nil }
        return String(decoding: bytes.prefix { $0 != UInt8(ascii: " ") }.prefix(64), as: UTF8.self)
    }
}
