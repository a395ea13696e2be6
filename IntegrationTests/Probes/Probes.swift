// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The programs that tests run: `Probes NAME ARGUMENT…`.
///
/// The file of each program describes it.
@main enum Probes {
    private enum Name: String, CaseIterable {
        case compute, fetch, host, hostile, limit, load, lock, remote, remoteLoad, shutdown, stop,
            systemCalls, worker
    }

    static func main() {
        do {
            try run()
        } catch {
            fail(error)
        }
    }

    private static func run() throws {
        var words = CommandLine.arguments.dropFirst()
        guard let name = words.popFirst().flatMap(Name.init) else {
            fatalError("usage: Probes \(Name.allCases.map(\.rawValue).joined(separator: "|")) ARGUMENT…")
        }
        let arguments = Array(words)
        switch name {
        case .compute: inTask { try await ComputeProbe.run(arguments) }
        case .fetch: inTask { try await FetchProbe.run(arguments) }
        case .host: try HostProbe.run(arguments)
        case .hostile: try HostileProbe.run(arguments)
        case .limit: try LimitProbe(arguments).run()
        case .load: try LoadProbe.run(arguments)
        case .lock: try LockProbe(arguments).run()
        case .remote: try RemoteProbe.run(arguments)
        case .remoteLoad:
            var probe = try RemoteLoadProbe(arguments)
            try probe.run()
        case .shutdown: try ShutdownProbe.run(arguments)
        case .stop: try StopProbe.run(arguments)
        case .systemCalls: try SystemCallProbe.run(arguments)
        case .worker: try WorkerProbe.run(arguments)
        }
    }

    /// Runs `body` in a task, and exits when it ends.
    static func inTask(_ body: @escaping @Sendable () async throws -> Void) -> Never {
        Task.detached {
            do {
                try await body()
                exit(EXIT_SUCCESS)
            } catch {
                fail(error)
            }
        }
        dispatchMain()
    }

    static func fail(_ error: any Error) -> Never {
        FileHandle.standardError.write(Data("\(error)\n".utf8))
        exit(EXIT_FAILURE)
    }

    /// Prints a line at once; `print` would buffer it if standard output is a pipe.
    static func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
}
