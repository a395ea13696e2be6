// SPDX-License-Identifier: Apache-2.0

import Transport

/// A stored response to a GET request, without the bytes of its body.
package struct StoredResponse: Sendable, Equatable {
    /// The stored part of the body.
    package enum Body: Sendable, Equatable {
        /// The whole body, of this length in bytes.
        case complete(Int)
        /// These bytes, and the length of the whole body if known.
        case part(Range<Int>, of: Int?)
    }

    package var status: Int
    /// The fields that are stored; see ``StoredFields``.
    package var fields: HTTPFields
    /// The time at which the request was sent.
    package var requested: HTTPDate
    /// The time at which the response was received.
    package var received: HTTPDate
    /// The request fields that selected this response among the variants.
    package var variant: Variant
    package var body: Body
    /// The epoch of the URL's choice when the response was stored; an invalidation of the URL starts a new epoch
    /// and makes this response unusable.
    package var epoch = "-"
    /// A random word that changes each time the response is stored or renewed, even if nothing else changes.
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

    /// The length of the whole body; nil if unknown.
    var length: Int? {
        switch body {
        case .complete(let length): length
        case .part(_, let length): length
        }
    }

    /// The time at which the origin server generated the response, or at which it was received if it has no valid Date
    /// (RFC 9110, section 6.6.1).
    package var date: HTTPDate {
        fields.first("Date").flatMap { HTTPDate($0, now: received) } ?? received
    }

    /// The directives of the response's Cache-Control field.
    package var control: CacheControl { CacheControl(fields) }
}
