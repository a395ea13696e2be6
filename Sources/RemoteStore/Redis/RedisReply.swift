// SPDX-License-Identifier: Apache-2.0

/// A reply from Redis, in version 2 or 3 of its protocol.
package enum RedisReply: Sendable, Equatable {
    /// One line, such as `OK`.
    case simple([UInt8])
    /// One line, or several in version 3; begins with a code such as `ERR`.
    case error([UInt8])
    case integer(Int64)
    case bulk([UInt8])
    case null
    case boolean(Bool)
    case double(Double)
    /// The digits of an integer of any length.
    case bigNumber([UInt8])
    /// An array or a set.
    case array([RedisReply])
    /// Alternating keys and values.
    case map([RedisReply])
    /// A message that the server sends without a request for it.
    case push([RedisReply])
}

extension RedisReply {
    /// The first word of an error, such as `NOAUTH` or `OOM`; nil for any other reply.
    package var errorCode: String? {
        guard case .error(let bytes) = self else { return nil }
        return String(decoding: bytes.prefix { $0 != UInt8(ascii: " ") }.prefix(64), as: UTF8.self)
    }
}
