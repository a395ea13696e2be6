// SPDX-License-Identifier: Apache-2.0

import Platform

/// `diskcache-net`: the same commands, in a program that can load libcurl.
enum NetworkProgram {
    static let name = "diskcache-net"

    /// Where it may be, in order: beside the program at `path`, or where `make install` puts it.
    static func places(beside path: String) -> [String] {
        guard let slash = path.lastIndex(of: "/") else { return [] }
        let folder = path[..<slash]
        return ["\(folder)/\(name)", "\(folder)/../libexec/diskcache/\(name)"]
    }

    /// Whether it is in one of these places.
    ///
    /// C: `readlink`, `open`.
    static var isThere: Bool {
        let places = CurrentProcess.executablePath.map(places(beside:)) ?? []
        return places.contains { path in
            (try? FileDescriptor(opening: path, .readOnly).isReadable()) ?? false
        }
    }

    /// Has it take the place of this process, with the same command line; returns why it could not.
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
        let looked = places.isEmpty ? "nothing tells where to look" : "neither is there: \(list)"
        return Failure(
            .unavailable,
            "the network needs the program \(name): \(looked): `make install` installs it with this one"
        )
    }
}

extension Arguments {
    /// For a command that is nothing without other machines: returns in `diskcache-net` alone.
    func requireNetwork() throws(Failure) {
        if network != nil { return }
        let failure = NetworkProgram.become()
        throw Failure(failure.status, "\(command): \(failure.message)")
    }

    /// For a command that does more where its directory is shared with other machines: begins anew in
    /// `diskcache-net`, whose cache (``openCache(sharing:)``) asks them and tells them.
    ///
    /// Where that can't be, the command does what it can without: other machines never make one fail.
    /// `doctor` tells.
    func shareIfConfigured() {
        // What is wrong with the path whoever opens it says.
        guard network == nil, let path = try? directory(), RemoteNotice.isPresent(in: path) else { return }
        _ = NetworkProgram.become()
    }
}
