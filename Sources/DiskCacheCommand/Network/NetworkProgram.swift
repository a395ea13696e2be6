// SPDX-License-Identifier: Apache-2.0

import Platform

/// `diskcache-net`: the same commands, in a program that can load libcurl.
enum NetworkProgram {
    static let name = "diskcache-net"

    /// Returns its possible paths, in order: next to the program at `path`, or in the directory used by `make install`.
    static func places(beside path: String) -> [String] {
        guard let slash = path.lastIndex(of: "/") else { return [] }
        let folder = path[..<slash]
        return ["\(folder)/\(name)", "\(folder)/../libexec/diskcache/\(name)"]
    }

    /// Whether it exists at one of these paths.
    ///
    /// C: `readlink`, `open`.
    static var isThere: Bool {
        let places = CurrentProcess.executablePath.map(places(beside:)) ?? []
        return places.contains { path in
            (try? FileDescriptor(opening: path, .readOnly).isReadable()) ?? false
        }
    }

    /// Replaces this process by it, with the same command line; returns the error if that fails.
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
    /// Restarts a command that needs other machines in `diskcache-net`; returns the error if that fails.
    func restartWithNetwork() -> Failure {
        let failure = NetworkProgram.become()
        return Failure(failure.status, "\(command): \(failure.message)")
    }

    /// Restarts the command in `diskcache-net` if its directory is shared with other machines.
    ///
    /// The cache of that program (``openCache(sharing:)``) queries and updates them. If the restart fails, the command
    /// continues without them: other machines never make a command fail. `doctor` reports the problem.
    func shareIfConfigured() {
        // A problem with the path is reported when the cache is opened.
        guard network == nil, let path = try? directory(), RemoteNotice.isPresent(in: path) else { return }
        _ = NetworkProgram.become()
    }
}
