// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// A port of 127.0.0.1 that refuses connections; no other process can bind it while this object exists.
public final class ClosedPort: Sendable {
    /// The port number.
    public let number: UInt16
    private let socket: Int32

    /// Binds any free port.
    public init() throws {
        (socket, number) = try Self.bound()
    }

    deinit {
        close(socket)
    }

    /// Returns a port that was free a moment ago; a process other than the intended one may bind it first.
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

/// Starts a server for a test; if another process has bound one of its ports, starts it again with other ports.
///
/// Checks that the started process itself listens; an accepted connection would not prove that.
///
/// - Parameters:
///   - count: The number of ports that the server needs.
///   - start: Starts the server with these ports.
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

/// Waits until a server listens on all of its ports; returns false if its process has ended.
public func awaitServer(_ process: Process, at ports: [UInt16]) -> Bool {
    var isThere = false
    waitUntil("it listens, or has ended") {
        isThere = ports.allSatisfy { listens(process.processIdentifier, at: $0) }
        return isThere || !process.isRunning
    }
    return isThere
}

/// Returns whether the process itself listens on a port of 127.0.0.1, according to proc(5).
private func listens(_ process: pid_t, at port: UInt16) -> Bool {
    let table = FileHandle(forReadingAtPath: "/proc/\(process)/net/tcp")
    let lines = (try? table?.readToEnd()).map { String(decoding: $0, as: UTF8.self) } ?? ""
    let address = String(format: "%08X:%04X", UInt32(0x7F00_0001).bigEndian, port)
    // State 0A is TCP_LISTEN; the tenth word is the inode number of the socket.
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
