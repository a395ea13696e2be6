// SPDX-License-Identifier: Apache-2.0

import Platform

/// One of the two streams that a command writes.
enum OutputStream: UInt8, Sendable {
    case output = 1
    case errors = 2

    /// The number of bytes that a writable pipe accepts without blocking: PIPE_BUF in pipe(7).
    private static let pipePiece = 4096

    /// How often to check whether to continue while nothing reads the output.
    private static let patience: Duration = .milliseconds(500)

    /// Writes all of `bytes` to the same stream of this process.
    ///
    /// - Parameters:
    ///   - interruption: A descriptor that interrupts a wait when it becomes readable.
    ///   - isAbandoned: Called after an interruption, and periodically; returns whether to drop the remaining bytes.
    func write(
        _ bytes: Span<UInt8>,
        interruption: Int32? = nil,
        isAbandoned: () throws(Errno) -> Bool = { () throws(Errno) in false }
    ) throws(Errno) {
        let number = self == .output ? Terminal.standardOutput : Terminal.standardError
        try FileDescriptor.borrowing(number) { (file) throws(Errno) in
            if try file.status().kind == .regular { return try file.writeAll(bytes) }
            var written = 0
            while written < bytes.count {
                let ready = try Readiness.wait(
                    for: interruption.map { [$0] } ?? [],
                    orWriting: number,
                    limit: Self.patience
                )
                guard ready.contains(number) else {
                    if try isAbandoned() { return }
                    continue
                }
                let piece = bytes.extracting(written..<min(bytes.count, written + Self.pipePiece))
                do throws(Errno) {
                    written += try file.writeSome(piece)
                } catch {
                    // Another process has written to the same pipe since the check.
                    if error != .wouldBlock { throw error }
                }
            }
        }
    }
}
