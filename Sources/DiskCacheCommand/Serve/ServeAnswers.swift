// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// The answers of `diskcache serve` on their way out.
struct ServeAnswers {
    /// Written out when nothing more is there to be answered, or when it is much.
    var output = Output()

    /// Adds one answer: its fields, the request's id, and the bytes that follow it.
    mutating func send(
        _ fields: JSON.Object,
        to id: ServeRequest.Identifier?,
        bytes: Data? = nil
    ) throws {
        let common: JSON.Object = ["id": id, "length": bytes?.count]
        let line = try JSON.line(JSON.Object(fields, common))
        // Harmless already; what is not ASCII need not be looked at twice.
        try output.writeRaw(line.utf8Span.span)
        if let bytes { try output.writeRaw(bytes.span) }
    }

    mutating func send(_ fault: ServeFault, to id: ServeRequest.Identifier? = nil) throws {
        try send(["error": fault.json], to: id)
    }
}
