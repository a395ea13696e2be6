// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Transport

/// Expects a request to fail with `code` and returns the error.
@discardableResult
func expectFailure(
    _ code: TransportError.Code,
    _ transport: Transport,
    _ request: TransportRequest,
    sourceLocation: SourceLocation = #_sourceLocation
) async -> TransportError? {
    do throws(TransportError) {
        let response = try await transport.perform(request)
        Issue.record("status \(response.status), \(response.received) bytes", sourceLocation: sourceLocation)
        return nil
    } catch {
        #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
        return error
    }
}

/// Performs a request as a caller on a thread that may block.
func blocking(
    _ transport: Transport,
    _ request: TransportRequest
) throws(TransportError) -> TransportResponse {
    try transport.performAndWait(request)
}
