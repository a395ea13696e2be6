// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// A port of 127.0.0.1 that refuses connections, and that nobody else gets, until this goes.
public final class ClosedPort: Sendable {
    /// Where it is.
    public let number: UInt16
    private let socket: Int32

    /// Takes any that is free.
    public init() throws {
        (socket, number) = try Self.bound()
    }

    deinit {
        close(socket)
    }

    /// One that was free a moment ago: another process may take it before the one that it is for.
    public static func free() throws -> UInt16 { try ClosedPort().number }

    private static func bound() throws -> (Int32, UInt16) {
        let number = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, length) == 0 && getsockname(number, $0, &length) == 0
            }
        }
        if isBound { return (number, UInt16(bigEndian: address.sin_port)) }
        close(number)
        throw POSIXError(.EADDRNOTAVAIL)
    }
}

/// Starts a server of a test's, again with other ports where another process has taken one of them.
///
/// What answers there is the server that was started: that a connection is accepted proves nothing.
///
/// - Parameters:
///   - count: how many ports it needs.
///   - start: starts it with these ports.
public func startServer(
    ports count: Int = 1,
    _ start: ([UInt16]) throws -> Process
) throws -> (process: Process, ports: [UInt16]) {
    for _ in 0..<20 {
        let ports = try (0..<count).map { _ in try ClosedPort.free() }
        let process = try start(ports)
        if awaitServer(process, at: ports) { return (process, ports) }
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
    throw POSIXError(.EADDRINUSE)
}

/// Waits until a server listens at all its ports; false: it has ended.
public func awaitServer(_ process: Process, at ports: [UInt16]) -> Bool {
    var isThere = false
    waitUntil("it listens, or has ended") {
        isThere = ports.allSatisfy { listens(process.processIdentifier, at: $0) }
        return isThere || !process.isRunning
    }
    return isThere
}

/// Whether a process itself listens at a port of 127.0.0.1; proc(5).
private func listens(_ process: pid_t, at port: UInt16) -> Bool {
    let table = FileHandle(forReadingAtPath: "/proc/\(process)/net/tcp")
    let lines = (try? table?.readToEnd()).map { String(decoding: $0, as: UTF8.self) } ?? ""
    let address = String(format: "%08X:%04X", UInt32(0x7F00_0001).bigEndian, port)
    // 0A: it listens. The tenth word is the number of the socket.
    let sockets = lines.split(separator: "\n").compactMap { line -> String? in
        let words = line.split(separator: " ")
        guard words.count > 9, words[1] == address, words[3] == "0A" else { return nil }
        return "socket:[\(words[9])]"
    }
    guard !sockets.isEmpty else { return false }
    let directory = "/proc/\(process)/fd"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    return names.contains { name in
        let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/\(name)")
        return target.map(sockets.contains) ?? false
    }
}
