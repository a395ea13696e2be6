// SPDX-License-Identifier: Apache-2.0

import Platform

/// The program `diskcache-net`, which has the same commands and can load libcurl.
enum NetworkProgram {
    static let name = "diskcache-net"

    /// Returns the possible paths of the program, in order: next to the program at `path`, then where `make install` puts
    /// it.
    static func places(beside path: String) -> [String] {
        guard let slash = path.lastIndex(of: "/") else { return [] }
        let folder = path[..<slash]
        return ["\(folder)/\(name)", "\(folder)/../libexec/diskcache/\(name)"]
    }

    /// Whether the program exists at one of these paths.
    ///
    /// C: `readlink`, `open`.
    static var isThere: Bool {
        let places = CurrentProcess.executablePath.map(places(beside:)) ?? []
        return places.contains { path in
            (try? FileDescriptor(opening: path, .readOnly).isReadable()) ?? false
        }
    }

    /// Replaces this process by the program, with the same command line; returns the error if that fails.
    ///
    /// C: `readlink`, `execv`.
    static func become() -> Failure {
        let places = CurrentProcess.executablePath.map(places(beside:)) ?? []
        for place in places {
            let words = [Array(place.utf8)] + CurrentProcess.arguments
            let error = SpawnRequest(bytes: words).replaceProcess()
            guard error == .noEntry else {
                return Failure(.unavailable, "start \(place): \(error): install it again")
            }
        }
        let list = places.joined(separator: ", ")
        let looked = places.isEmpty ? "its path can't be determined" : "not found: \(list)"
        return Failure(
            .unavailable,
            "network access needs the program \(name): \(looked): `make install` installs it"
        )
    }
}

extension Arguments {
    /// Restarts a command that needs other machines in `diskcache-net`; if that fails, returns the error.
    func restartWithNetwork() -> Failure {
        let failure = NetworkProgram.become()
        return Failure(failure.status, "\(command): \(failure.message)")
    }

    /// Restarts the command in `diskcache-net` if its directory is shared with other machines.
    ///
    /// The restarted command queries and updates them (``openCache(sharing:)``). If the restart fails, the command
    /// continues without other machines, which never make a command fail; `doctor` reports the problem.
    func shareIfConfigured() {
        // Opening the cache reports a problem with the path.
        guard network == nil, let path = try? directory(), RemoteNotice.isPresent(in: path) else { return }
        _ = NetworkProgram.become()
    }
}
