// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// The buffered answers of `diskcache serve`.
struct ServeAnswers {
    /// The output; flushed when it is large, and before each wait for input.
    var output = Output()

    /// Appends an answer: its fields, the request's identifier, and the bytes that follow the line.
    mutating func send(
        _ fields: JSON.Object,
        to id: ServeRequest.Identifier?,
        bytes: Data? = nil
    ) throws {
        let common: JSON.Object = ["id": id, "length": bytes?.count]
        let line = try JSON.line(JSON.Object(fields, common))
        // The line is already escaped, so non-ASCII text needs no second check.
        try output.writeRaw(line.utf8Span.span)
        if let bytes { try output.writeRaw(bytes.span) }
    }

    mutating func send(_ fault: ServeFault, to id: ServeRequest.Identifier? = nil) throws {
        try send(["error": fault.json], to: id)
    }
}
