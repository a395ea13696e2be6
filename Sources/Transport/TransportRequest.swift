// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// One transfer: the request, the body to send, and the destination of the received body.
///
/// Redirects are not followed. HTTP/2 is used if the server offers it over TLS and no body is sent.
///
/// Descriptors belong to the caller. They must stay open until the call returns, and are not used after that. Reads and
/// writes begin at their offset. A descriptor may be nonblocking; the transfer then waits until it is ready.
package struct TransportRequest: Sendable {
    /// The destination of the received body.
    package enum Output: Sendable {
        /// The body is returned in ``TransportResponse/body``.
        case memory
        /// The descriptor of a regular file, written in pieces of at most 64 KiB. Writes to a file of another kind may block
        /// for any time, or raise SIGPIPE.
        case descriptor(Int32)
    }

    /// What to do with the body of a response.
    package enum Disposition: Sendable, Equatable {
        /// Writes the body to the output.
        case keep
        /// Writes the body to the output if it has at most this many bytes; otherwise the transfer fails
        /// (``TransportError/Code/tooLarge``), and no further bytes are written.
        case keepUpTo(Int64)
        /// Reads and drops the body, so that the connection can be reused; after 256 KiB ends the transfer like ``stop``.
        case discard
        /// Ends the transfer at once, without an error; the connection is closed.
        case stop
    }

    /// The method.
    ///
    /// A request with a method that must not be repeated (RFC 9110, section 9.2.2), such as POST and PATCH, is sent once,
    /// over a new connection. Other requests are sent again if a reused connection turns out to be closed.
    package var method = "GET"
    /// An http or https URL, complete and escaped.
    package var url: String
    package var fields: [HeaderField] = []
    /// The body to send, which is copied once; nil for none.
    package var body: Data?
    package var output = Output.memory
    /// Called once, on the transfer's thread, when the first byte of the body has arrived, before it is written.
    ///
    /// It is not called for an empty body.
    package var disposition: @Sendable (TransportResponse) -> Disposition = { _ in .keep }
    /// Called on the transfer's thread after each piece of a body that is kept, with the number of bytes so far; false
    /// ends the transfer at once, like ``Disposition/stop``.
    ///
    /// It may block.
    package var mayGrow: (@Sendable (Int64) -> Bool)?
    /// Called on the transfer's thread to free this many bytes if a disk or a quota is full; returns true if the write
    /// should be retried.
    ///
    /// It may block.
    package var makeSpace: (@Sendable (Int) -> Bool)?
    /// The maximum length of a body that is kept, in bytes.
    package var mostBytes = Int64.max
    /// The maximum length of all heads together, in bytes, including those of interim responses.
    package var mostHeadBytes = 256 * 1024
    /// The time limit for the whole call, rounded up to milliseconds; nil, or more than 100 years, for no limit.
    package var timeLimit: Duration?
    /// The time limit for connecting; nil for libcurl's default of 300 s.
    package var connectLimit: Duration?
    /// The maximum time without a byte in either direction; the time that descriptors and callbacks of the caller take
    /// does not count.
    ///
    /// In addition, the average rate over twice that time must be at least 5 bytes a second. Nil for neither limit.
    package var stallLimit: Duration?
    package var security = TransportSecurity()
    package var proxy = TransportProxy.environment
    package var credentials: TransportCredentials?

    package init(_ url: String, method: String = "GET") {
        self.url = url
        self.method = method
    }
}
