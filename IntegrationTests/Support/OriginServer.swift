// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport

/// The server `Scripts/origin.py` beside a bash script, which gets its address as `$ORIGIN` and the log of its requests as
/// `$LOG`.
struct OriginServer {
    let tool: Tool

    /// Whether python3, which the server needs, and libcurl, which the command needs, are installed.
    static let isPossible: Bool = {
        let folders = ["/usr/lib", "/lib"].flatMap { folder in
            [folder] + ["x86_64-linux-gnu", "aarch64-linux-gnu"].map { "\(folder)/\($0)" }
        }
        let hasLibrary = (folders + ["/usr/lib64"]).contains {
            FileManager.default.fileExists(atPath: $0 + "/libcurl.so.4")
        }
        return hasLibrary && FileManager.default.isExecutableFile(atPath: "/usr/bin/python3")
    }()

    /// Runs the script, and ends the server afterwards; `stop` in the script ends it earlier.
    func run(_ script: String) throws -> Tool.Run {
        let server = PackageFiles.tests.appendingPathComponent("Scripts/origin.py").path
        return try tool.shell(
            """
            port='\(tool.path("port"))' LOG='\(tool.path("log"))'
            rm -f "$port" "$LOG"; mkfifo "$port"; touch "$LOG"
            python3 '\(server)' "$port" "$LOG" & server=$!
            stop() { if [ "$server" ]; then kill $server; wait $server 2>/dev/null; fi; server=; }
            trap stop EXIT
            read -r number <"$port"
            ORIGIN=http://127.0.0.1:$number
            unset http_proxy https_proxy all_proxy HTTPS_PROXY ALL_PROXY
            fetch() { "$TOOL" fetch "$@"; }
            \(script)
            """
        )
    }
}
