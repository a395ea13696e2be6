// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// The output buffer of the answers of `diskcache serve`.
struct ServeAnswers {
    /// The output, which is flushed when no more input is available, or when it is large.
    var output = Output()

    /// Adds one answer: its fields, the request's identifier, and the bytes that follow it.
    mutating func send(
        _ fields: JSON.Object,
        to id: ServeRequest.Identifier?,
        bytes: Data? = nil
    ) throws {
        let common: JSON.Object = ["id": id, "length": bytes?.count]
        let line = try JSON.line(JSON.Object(fields, common))
        // The line is already escaped; non-ASCII text needs no second check.
        try output.writeRaw(line.utf8Span.span)
        if let bytes { try output.writeRaw(bytes.span) }
    }

    mutating func send(_ fault: ServeFault, to id: ServeRequest.Identifier? = nil) throws {
        try send(["error": fault.json], to: id)
    }
}
