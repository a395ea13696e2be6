// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Tests of `make install` with the command that was built for the tests.
@Suite(
    .takesTurns,
    .enabled(
        if: FileManager.default.isExecutableFile(atPath: "/usr/bin/make"),
        "there is no make: nothing is installed"
    )
)
struct InstallTests {
    let tool: Tool
    let root: String

    init() throws {
        tool = try Tool()
        root = tool.path("a root")
    }

    static let built = "BINARY=\"$TOOL\" NETBINARY=\"$TOOL-net\""

    func make(_ goal: String, _ variables: String = built) throws -> Tool.Run {
        try tool.shell(
            "make -s -C '\(PackageFiles.root.path)' \(goal) DESTDIR='\(root)' PREFIX=/opt/it \(variables)"
        )
    }

    /// Returns the installed files with their permissions.
    func installed() throws -> [String] {
        try tool.shell("cd '\(root)' 2>/dev/null && find . -type f -printf '%m %P\\n' | sort -k 2").lines
    }

    @Test func `make install installs the expected files and no others`() throws {
        let run = try make("install")
        #expect(run.status == 0 && run.errorData.isEmpty, "\(run.error)")
        let share = "opt/it/share"
        #expect(
            try installed() == [
                "755 opt/it/bin/diskcache",
                "755 opt/it/libexec/diskcache/diskcache-net",
                "644 \(share)/bash-completion/completions/diskcache",
                "644 \(share)/doc/diskcache/examples/diskcache-gc.service",
                "644 \(share)/doc/diskcache/examples/diskcache-gc.timer",
                "644 \(share)/doc/diskcache/examples/diskcache-watch.service",
                "644 \(share)/doc/diskcache/examples/diskcache.cron",
                "644 \(share)/fish/vendor_completions.d/diskcache.fish",
                "644 \(share)/man/man1/diskcache.1",
                "644 \(share)/zsh/site-functions/_diskcache",
            ]
        )
        let compared = try tool.shell(
            """
            cd '\(root)/opt/it' && cmp bin/diskcache "$TOOL"
            cmp libexec/diskcache/diskcache-net "$TOOL-net"
            cmp share/man/man1/diskcache.1 <(bin/diskcache man-page)
            cmp share/bash-completion/completions/diskcache <(bin/diskcache completions bash)
            cmp share/zsh/site-functions/_diskcache <(bin/diskcache completions zsh)
            cmp share/fish/vendor_completions.d/diskcache.fish <(bin/diskcache completions fish)
            """
        )
        #expect(
            compared.outputData.isEmpty && compared.errorData.isEmpty,
            "\(compared.output)\(compared.error)"
        )
    }

    @Test func `a second install succeeds, and uninstall removes only its own files`() throws {
        #expect(try make("install").status == 0)
        #expect(try make("install").status == 0)
        makeFile(root + "/opt/it/bin/other")
        #expect(try make("uninstall").status == 0)
        #expect(try installed() == ["644 opt/it/bin/other"])
        #expect(!FileManager.default.fileExists(atPath: root + "/opt/it/share/doc/diskcache"))
        #expect(!FileManager.default.fileExists(atPath: root + "/opt/it/libexec/diskcache"))
    }

    @Test func `the installed command finds diskcache-net, and names the searched path if it is absent`()
        throws
    {
        #expect(try make("install").status == 0)
        // No server listens at this port.
        let fetch = "'\(root)/opt/it/bin/diskcache' fetch --retries 0 http://127.0.0.1:1/x"
        let present = try tool.shell(fetch)
        #expect(present.status == 69 && !present.error.contains("diskcache-net"), "\(present.error)")
        try FileManager.default.removeItem(atPath: root + "/opt/it/libexec/diskcache/diskcache-net")
        let missing = try tool.shell(fetch)
        #expect(missing.status == 69 && missing.error.split(separator: "\n").count == 1, "\(missing.error)")
        #expect(missing.error.contains("bin/../libexec/diskcache/diskcache-net"), "\(missing.error)")
    }

    @Test func `the command can be installed without diskcache-net`() throws {
        #expect(try make("install", "BINARY=\"$TOOL\" NETBINARY=").status == 0)
        #expect(try installed().allSatisfy { !$0.contains("libexec") })
    }

    @Test(arguments: ["/nonexistent", "/bin/false"])
    func `without a working command nothing is installed`(binary: String) throws {
        #expect(try make("install", "BINARY=\(binary) NETBINARY=").status != 0)
        #expect(try installed().isEmpty)
    }

    @Test func `the examples name the installed command`() throws {
        #expect(try make("install").status == 0)
        let found = try tool.shell(
            "cd '\(root)/opt/it/share/doc/diskcache/examples' && grep -ho '/[a-z/]*bin/diskcache' *"
        )
        #expect(Set(found.lines) == ["/opt/it/bin/diskcache"] && found.lines.count == 2)
        let path = try tool.shell(
            "grep -h ^PATH= '\(root)/opt/it/share/doc/diskcache/examples/diskcache.cron'"
        )
        #expect(path.lines == ["PATH=/opt/it/bin:/usr/bin:/bin"])
    }

    @Test func `the line for cron prints only a failure`() throws {
        let example = "\(root)/opt/it/share/doc/diskcache/examples/diskcache.cron"
        #expect(try make("install").status == 0)
        let run = try tool.shell(
            """
            line=$(tail -1 '\(example)' | sed "s|.*www-data  ||; s|/var/cache/thumbs|$DISKCACHE_DIR|")
            cron() { env -i PATH="$(dirname "$TOOL"):/usr/bin:/bin" "$@" sh -c "$line"; echo "status $?"; }
            cron; "$TOOL" put k </dev/null; cron; cron flock "$DISKCACHE_DIR/locks/janitor"
            """
        )
        #expect(run.lines.count == 4, "\(run.output)")
        #expect(run.lines.first?.contains("there is no cache") == true, "\(run.output)")
        #expect(run.lines.dropFirst() == ["status 1", "status 0", "status 0"], "\(run.output)")
        #expect(run.errorData.isEmpty, "\(run.error)")
    }

    @Test func `the service for gc --watch starts even if there is no cache yet`() throws {
        #expect(try make("install").status == 0)
        let unit = try String(
            contentsOfFile: "\(root)/opt/it/share/doc/diskcache/examples/diskcache-watch.service",
            encoding: .utf8
        )
        #expect(!unit.contains("Condition") && unit.contains("\nCacheDirectory=thumbs\n"))
    }

    @Test(
        .enabled(
            if: ["systemd-analyze", "man"].allSatisfy {
                FileManager.default.isExecutableFile(atPath: "/usr/bin/" + $0)
            },
            "there is no systemd-analyze, or no man: the examples are not checked"
        )
    )
    func `systemd accepts the examples`() throws {
        #expect(try make("install").status == 0)
        // So that systemd finds the command and the manual.
        let run = try tool.shell(
            """
            cd '\(root)/opt/it/share/doc/diskcache/examples'
            sed -i "s|/opt/it/bin/diskcache|$TOOL|" *.service
            MANPATH='\(root)/opt/it/share/man' systemd-analyze verify ./*.service ./*.timer
            """
        )
        #expect(run.status == 0 && run.errorData.isEmpty, "\(run.output)\(run.error)")
    }
}
