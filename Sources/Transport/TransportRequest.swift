// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import Platform

/// A line of a head.
package struct HeaderField: Sendable, Equatable {
    package var name: String
    package var value: String
    private let declared: Bool?

    /// - Parameter isSecret: nil: unless ``HarmlessFields`` has the name.
    package init(_ name: String, _ value: String, isSecret: Bool? = nil) {
        self.name = name
        self.value = value
        declared = isSecret
    }

    /// Whether it goes only to the server that is asked, and to no other that a redirect leads to.
    package var isSecret: Bool {
        if let declared { return declared }
        return !HarmlessFields.contains(name.lowercased())
    }

    /// Whether it has this name, which is in small letters.
    package func isNamed(_ lowercased: String) -> Bool {
        let (name, other) = (name.utf8.span, lowercased.utf8.span)
        guard name.count == other.count else { return false }
        for index in name.indices where name[index] != other[index] {
            guard (0x41...0x5A).contains(name[index]), name[index] | 0x20 == other[index] else {
                return false
            }
        }
        return true
    }
}

/// One transfer: what is asked for, what is sent, and where the body goes.
///
/// Descriptors are the caller's. They must stay open until the call returns, and are not used any more then;
/// reads and writes begin at their offset. One that others have set to not block is waited for all the same.
package struct TransportRequest: Sendable {
    /// The body to send.
    package enum Source: Sendable {
        case nothing
        /// Copied once.
        case bytes(Data)
        /// `length` bytes; nil: to the end, in chunks. Only a regular file can be sent again where a kept
        /// connection turns out to be closed.
        case descriptor(Int32, length: Int64?)
    }

    /// Where the body goes.
    package enum Output: Sendable {
        /// Into ``TransportResponse/body``.
        case memory
        /// In pieces of at most 64 KiB; who reads slowly at the other end of a pipe slows the server down.
        case descriptor(Int32)
    }

    /// What becomes of the body of a response.
    package enum Disposition: Sendable, Equatable {
        /// It goes to the output.
        case keep
        /// It goes to the output if it has no more than so many bytes; otherwise the transfer fails
        /// (``TransportError/Code/tooLarge``), and no more of them are written.
        case keepUpTo(Int64)
        /// It is read and dropped, so that the connection can be used again; beyond 256 KiB as with ``stop``.
        case discard
        /// The transfer ends at once, and is none the worse for it; the connection is closed.
        case stop
    }

    /// One that may not be done twice (RFC 9110, 9.2.2), as POST and PATCH, is sent once, over a connection of its own;
    /// others are sent again where a kept connection turns out to be closed.
    package var method = "GET"
    /// `http:` or `https:`, whole and escaped.
    package var url: String
    package var fields: [HeaderField] = []
    package var source = Source.nothing
    package var output = Output.memory
    /// Asked once, in the transport's thread, when the first byte of the body is there, and before it is
    /// written.
    ///
    /// Not asked of a body without a byte, nor of redirects that are followed.
    package var disposition: @Sendable (TransportResponse) -> Disposition = { _ in .keep }
    /// Redirects that are followed, of GET and HEAD only, to http and https only.
    ///
    /// Others come as responses.
    ///
    /// Secret fields (``HeaderField/isSecret``), `Host` and ``credentials`` do not go to another scheme,
    /// server or port.
    package var mostRedirects = 0
    /// The digest of what comes: this with the body appended where the status is 206, for a body that is gone
    /// on with; else that of the body alone.
    ///
    /// It is found in ``TransportResponse/digest``. nil: none is made.
    package var digest: SHA256?
    /// Told of each piece of a body that is kept, in the transport's thread, after it was written.
    package var progress: (@Sendable (TransportProgress) -> Void)?
    /// Told after each piece of a body that is kept how many bytes have come, in the transport's thread; false: the
    /// transfer ends at once, as with ``Disposition/stop``.
    ///
    /// It may block.
    package var mayGrow: (@Sendable (Int64) -> Bool)?
    /// Asked for space for so many bytes, in the transport's thread, where a disk or a quota is full; true:
    /// it may have made some, and the write is tried again.
    ///
    /// It may block.
    package var makeSpace: (@Sendable (Int) -> Bool)?
    /// Bodies are decompressed (gzip, deflate and whatever libcurl knows); ``mostBytes`` counts what comes
    /// out.
    package var decodesContent = false
    /// Bytes of a body that is kept.
    package var mostBytes = Int64.max
    /// Bytes of all heads: redirects' and interim responses' too.
    package var mostHeadBytes = 256 * 1024
    /// For all of it, from the call on, counted in milliseconds; nil, or more than 100 years: none.
    package var timeLimit: Duration?
    /// Until the connection is there; nil: libcurl's own 300 s.
    package var connectLimit: Duration?
    /// How long there may be not a byte either way; the time that a slow caller takes does not count.
    ///
    /// In twice that time as many bytes have to come or go as make 5 a second; nil: both may take any time.
    package var stallLimit: Duration?
    package var security = TransportSecurity()
    package var proxy = TransportProxy.environment
    package var credentials: TransportCredentials?
    /// HTTP/2 where the server offers it over TLS, and nothing is sent but a head.
    package var allowsHTTP2 = true

    package init(_ url: String, method: String = "GET") {
        self.url = url
        self.method = method
    }
}

/// How far a body has come.
package struct TransportProgress: Sendable, Equatable {
    /// Bytes so far.
    package let received: Int64
    /// Bytes that it will have, as the server says; nil: it does not say.
    package let total: Int64?

    package init(received: Int64, total: Int64?) {
        self.received = received
        self.total = total
    }
}
