// SPDX-License-Identifier: Apache-2.0

import CTransport
import FoundationEssentials
import Platform

/// Connections and TLS sessions that libcurl keeps, for one transfer at a time; each transfer has a new easy handle.
@safe
final class CurlSession: Sendable {
    nonisolated(unsafe) let session: OpaquePointer

    /// Creates a session without connections.
    ///
    /// C: `eventfd`.
    init(_ library: LibCurl) throws(TransportError) {
        guard let session = unsafe ctransport_line_make(library.functions) else {
            throw TransportError(.noResources, "no memory or no descriptor for a transfer")
        }
        unsafe self.session = session
    }

    deinit {
        unsafe ctransport_line_free(session)
    }

    /// Ends the present transfer, or the next one before it begins.
    func wake() {
        unsafe ctransport_wake(session)
    }

    /// Discards all wake-ups so far.
    func forgetWakes() {
        unsafe ctransport_forget_wakes(session)
    }

    /// Releases the last transfer; may wait for the name resolver.
    func end() {
        unsafe ctransport_end(session)
    }
}
