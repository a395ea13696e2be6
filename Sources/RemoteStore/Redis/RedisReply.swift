// SPDX-License-Identifier: Apache-2.0

/// A reply from Redis, in version 2 of its protocol.
enum RedisReply: Sendable, Equatable {
    /// One line, such as `OK`.
    case simple([UInt8])
    /// One line, which begins with a code such as `ERR`.
    case error([UInt8])
    case integer(Int64)
    case bulk([UInt8])
    case null
    case array([RedisReply])

    /// The first word of an error, such as `NOAUTH` or `OOM`; nil for any other reply.
    var errorCode: String? {
        guard case .error(let bytes) = self else { return nil }
        return String(decoding: bytes.prefix { $0 != UInt8(ascii: " ") }.prefix(64), as: UTF8.self)
    }
}
