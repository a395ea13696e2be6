// SPDX-License-Identifier: Apache-2.0

import CTransport

/// The functions of libcurl, which is opened when it is first needed; that takes 9 ms once.
@safe
struct LibCurl: Sendable {
    nonisolated(unsafe) let functions: OpaquePointer

    /// The system's library; an error is final for the process.
    static let system: Result<LibCurl, TransportError> = Result { () throws(TransportError) in
        try LibCurl(opening: "libcurl.so.4")
    }

    /// Opens a library.
    ///
    /// C: `dlopen`.
    init(opening name: String) throws(TransportError) {
        let capacity = 512
        var reason = [CChar](repeating: 0, count: capacity)
        let functions = unsafe ctransport_open(name, &reason, capacity)
        guard let functions = unsafe functions else {
            let bytes = reason.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            throw .libraryMissing(String(decoding: bytes, as: UTF8.self))
        }
        unsafe self.functions = functions
    }

    /// Returns an HTTP date (RFC 9110, section 5.6.7) in seconds since the beginning of 1970; nil for any other text.
    func seconds(ofDate text: String) -> Int64? {
        let seconds = unsafe ctransport_date(functions, text)
        return seconds < 0 ? nil : seconds
    }
}
