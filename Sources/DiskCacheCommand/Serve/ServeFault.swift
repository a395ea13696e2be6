// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// The error of a request, as reported in the answer.
struct ServeFault: Error, Equatable {
    /// The codes in addition to those of ``CacheError/Code``.
    enum Code: String {
        /// A field is missing, has the wrong type, or has an invalid value.
        case badRequest
        /// The operation does not exist.
        case unknownOperation
        /// Another failure of the cache.
        case unavailable
        /// The beginning of the next request can't be determined: this answer is the last one.
        case malformed
    }

    let code: String
    let message: String
    /// Whether this is the last answer.
    let isFatal: Bool

    init(_ code: Code, _ message: String) {
        self.code = code.rawValue
        self.message = message
        isFatal = code == .malformed
    }

    /// Creates the answer to an error; nil if the error is not caused by the request, such as an output without a reader.
    init?(_ error: any Error) {
        switch error {
        case let fault as ServeFault: self = fault
        case let error as CacheError: self.init(error)
        case let failure as Failure:
            self.init(failure.status == .usage ? .badRequest : .unavailable, failure.message)
        default: return nil
        }
    }

    init(_ error: CacheError) {
        code = error.code.rawValue
        message = error.message
        isFatal = false
    }

    /// The object in the answer.
    var json: JSON.Object {
        let fatal: Bool? = isFatal ? true : nil
        return ["code": code, "message": message, "fatal": fatal]
    }
}
