// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// Why a request was not done, as it is answered.
struct ServeFault: Error, Equatable {
    /// The codes besides those of ``CacheError/Code``.
    enum Code: String {
        /// A field is missing, of the wrong type, or can't be what it is.
        case badRequest
        /// There is no such operation.
        case unknownOperation
        /// Something else that the cache can't give.
        case unavailable
        /// Where the next request begins can't be told: this answer is the last one.
        case malformed
    }

    let code: String
    let message: String
    /// Whether nothing more is answered.
    let isFatal: Bool

    init(_ code: Code, _ message: String) {
        self.code = code.rawValue
        self.message = message
        isFatal = code == .malformed
    }

    /// What to answer after an error; nil: it is not the request's, such as that nobody reads the output.
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

    /// As it stands in the answer.
    var json: JSON.Object {
        let fatal: Bool? = isFatal ? true : nil
        return ["code": code, "message": message, "fatal": fatal]
    }
}
