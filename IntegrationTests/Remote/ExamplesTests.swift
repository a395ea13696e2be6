// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Tests of the configurations in Examples/remote: their script starts each server with the file that users copy.
@Suite("Configurations of servers", .takesTurns) struct ExamplesTests {
    private static let script = PackageFiles.root.appendingPathComponent("Examples/remote/check").path

    /// A check of the script, and the program that it needs.
    struct Server: Sendable, CustomTestStringConvertible {
        let name: String
        let program: String

        var testDescription: String { name }

        /// Whether the program is in the path of the tests or in a directory where packages install it.
        var isInstalled: Bool {
            let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
            let directories = path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/local/sbin"]
            return directories.contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(program)") }
        }
    }

    private static let servers = [
        Server(name: "nginx", program: "nginx"), Server(name: "clean", program: "findmnt"),
        Server(name: "redis", program: "redis-server"), Server(name: "ccache", program: "ccache"),
        Server(name: "bazel-remote", program: "bazel-remote"), Server(name: "apache", program: "apache2"),
        Server(name: "lighttpd", program: "lighttpd"), Server(name: "squid", program: "squid"),
        Server(name: "s3", program: "moto_server"),
    ]
    private static let hasPython = Server(name: "python3", program: "python3").isInstalled

    @Test(
        "each example works",
        .enabled(if: hasPython, "python3 is not installed"),
        arguments: servers
    )
    func server(_ server: Server) throws {
        guard server.isInstalled else {
            print("skipped: \(server.program) is not installed")
            return
        }
        let (output, status) = try BuiltCommand.run("/usr/bin/env", ["python3", Self.script, server.name])
        // 77 means that something else that the check needs is missing, such as a compiler.
        #expect(status == 0 || status == 77, "\(output)")
        print(output, terminator: "")
    }

    @Test("every example file is named in its article")
    func files() throws {
        let root = URL(fileURLWithPath: Self.script).deletingLastPathComponent()
        for name in ["nginx", "redis", "bazel-remote", "ccache", "apache", "lighttpd", "squid", "s3"] {
            let place = root.appendingPathComponent(name)
            let article = try String(contentsOf: place.appendingPathComponent("README.md"), encoding: .utf8)
            let names = try FileManager.default.contentsOfDirectory(atPath: place.path)
            for file in names where file != "README.md" {
                let isNamed = article.contains(file) || file.hasPrefix("diskcache-remote")
                #expect(isNamed, "\(name)/\(file)")
            }
        }
    }
}
