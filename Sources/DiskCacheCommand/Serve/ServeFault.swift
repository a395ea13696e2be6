// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// The error of a request, as its answer reports it.
struct ServeFault: Error, Equatable {
    /// Error codes in addition to those of ``CacheError/Code``.
    enum Code: String {
        /// A field is missing, has the wrong type, or has an invalid value.
        case badRequest
        /// The operation does not exist.
        case unknownOperation
        /// The cache failed for another reason.
        case unavailable
        /// The start of the next request can't be determined, so this is the last answer.
        case malformed
    }

    let code: String
    let message: String
    /// Whether this answer is the last one.
    let isFatal: Bool

    init(_ code: Code, _ message: String) {
        self.code = code.rawValue
        self.message = message
        isFatal = code == .malformed
    }

    /// Creates the fault for an error; nil if the request did not cause it, such as an output without a reader.
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

    /// The error as an object in the answer.
    var json: JSON.Object {
        let fatal: Bool? = isFatal ? true : nil
        return ["code": code, "message": message, "fatal": fatal]
    }
}
