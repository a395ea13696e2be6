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
    /// The epoch of its URL's choice; an invalidation of the URL begins a new one, after which this response is not used.
    package var epoch = "-"
    /// Differs each time that a response is stored or renewed, whatever its content and however short the interval.
    package var issue = "-"

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

    /// The length of the whole body, if known.
    var length: Int? {
        switch body {
        case .complete(let length): length
        case .part(_, let length): length
        }
    }

    /// When the origin server generated it, or when it was received if that is not stated (RFC 9110, section 6.6.1).
    package var date: HTTPDate {
        fields.first("Date").flatMap { HTTPDate($0, now: received) } ?? received
    }

    /// The directives of its Cache-Control.
    package var control: CacheControl { CacheControl(fields) }
}
