// SPDX-License-Identifier: Apache-2.0

import Transport

/// A stored response to GET, without its bytes.
package struct StoredResponse: Sendable, Equatable {
    /// The stored part of the body.
    package enum Body: Sendable, Equatable {
        /// The whole body, of this length in bytes.
        case complete(Int)
        /// These bytes, and the length of the whole body if known.
        case part(Range<Int>, of: Int?)
    }

    package var status: Int
    /// Only fields that are kept; see ``StoredFields``.
    package var fields: HTTPFields
    /// When the request was sent.
    package var requested: HTTPDate
    /// When the response was received.
    package var received: HTTPDate
    /// The request fields that selected this response among the variants.
    package var variant: Variant
    package var body: Body

    package init(
        status: Int = 200,
        fields: HTTPFields,
        requested: HTTPDate,
        received: HTTPDate,
        variant: Variant = Variant(),
        body: Body
    ) {
        self.status = status
        self.fields = fields
        self.requested = requested
        self.received = received
        self.variant = variant
        self.body = body
    }

    /// When the origin server generated it, or when it was received if that is not stated (RFC 9110, section 6.6.1).
    package var date: HTTPDate {
        fields.first("Date").flatMap { HTTPDate($0, now: received) } ?? received
    }

    /// The directives of its Cache-Control.
    package var control: CacheControl { CacheControl(fields) }
}
