// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of the findings of `doctor` in real directories.
@Suite(.takesTurns) struct DoctorTests {
    let tool: Tool
    let cache: SharedCache

    init() throws {
        tool = try Tool()
        cache = try tool.cache()
        try cache.put("hello", forKey: "k")
    }

    /// Returns the level and the state of the finding on a subject.
    func finding(_ subject: String) throws -> (level: String, state: String) {
        let run = try tool.run("doctor", "--json")
        let findings = try #require(try json(run)["findings"] as? [[String: Any]])
        let found = try #require(findings.first { $0["subject"] as? String == subject })
        let isRisky = findings.contains { $0["level"] as? String == "risk" }
        #expect(run.status == (isRisky ? 78 : 0))
        return (found["level"] as? String ?? "", found["state"] as? String ?? "")
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give files away"))
    func `files of another owner are found`() throws {
        #expect(try finding("owner").level == "fine")
        let shard = try #require(try tool.shell("cd \"$DISKCACHE_DIR\" && echo objects/*").lines.first)
        #expect(try tool.shell("cd \"$DISKCACHE_DIR\" && chown 1234 \(shard) locks/entry-07").status == 0)
        let found = try finding("owner")
        #expect(found.level == "risk" && found.state.hasSuffix("others own locks/entry-07, \(shard)"))
    }

    @Test func `a control file of another version is found, before opening replaces it`() throws {
        cache.close()
        let patch = "printf '\\007' | dd of=\"$DISKCACHE_DIR/control\" bs=1 seek=8 conv=notrunc status=none"
        #expect(try tool.shell(patch).status == 0)
        let found = try finding("version")
        #expect(found.level == "risk" && found.state.contains("layout 7"))
        #expect(try finding("version").level == "fine")
    }

    @Test func `an unreadable rules file is found`() throws {
        // A rule that stays, because a value is stale by it.
        try cache.expireAll(.prefix("k"), staleFor: .seconds(3600))
        cache.close()
        try #require(tool.files().contains("rules"))
        #expect(try tool.run("doctor").status == 0)
        makeFile(tool.directory + "/rules", "nothing of ours\n")
        let found = try finding("rules")
        #expect(found.level == "risk" && found.state.contains("can't be used"))
    }

    @Test func `values that were stored by a clock that is ahead are found`() throws {
        #expect(try finding("clock").level == "fine")
        let created = Date(timeIntervalSinceNow: 7200)
        try tool.cache { $0.now = { created } }.put("value", forKey: "ahead")
        let found = try finding("clock")
        #expect(found.level == "risk" && found.state.contains("clock that was 1h 59m"), "\(found)")
    }

    @Test func `a newer format is reported in one line`() throws {
        cache.close()
        makeFile(tool.directory + "/format", "diskcache 99\n")
        let run = try tool.run("doctor")
        #expect(run.status == 78 && run.outputData.isEmpty && run.error.contains("format 99"))
    }

    @Test func `a process that is stopped during a collection is found, with the time since its start`()
        throws
    {
        #expect(try finding("collections") == ("fine", "none yet"))
        let script = """
            lock="$DISKCACHE_DIR/locks/janitor"
            # Without a fork, as the kernel names whoever took the lock.
            flock --no-fork "$lock" sleep 1000 >/dev/null 2>&1 &
            trap 'kill -9 $!' EXIT
            while flock --nonblock "$lock" true; do :; done
            kill -STOP $!
            printf 'sweep 1\\nprocess %d\\nbegan %d000000000\\nend\\n' $! $(($(date +%s) - 300)) 1<>"$lock"
            while [ "$(ps -o stat= -p $! | cut -c1)" != T ]; do :; done
            "$TOOL" doctor
            """
        let run = try tool.shell(script)
        #expect(run.status == 78, "\(run.error)")
        #expect(run.output.contains("has been collecting for 5m") && run.output.contains("and is stopped"))
        // The holder was killed: its lock is free, and the lock file is left.
        #expect(try finding("collections") == ("fine", "the last was interrupted; the next completes it"))
        #expect(try tool.run("gc").status == 0)
        let last = try finding("collections")
        #expect(last.level == "fine" && last.state.hasPrefix("last completed "))
    }

    @Test(
        .enabled(if: Mount.isAllowed, "nothing can be mounted here"),
        arguments: [("strictatime", "fallback"), ("noatime", "fine"), ("relatime", "fine")]
    )
    func `the access time option of the mount is found`(option: String, level: String) throws {
        let mount = try Mount("tmpfs", options: option + ",size=32m")
        _ = try SharedCache(at: mount.path + "/cache")
        let run = try tool.run("doctor", "--json", "--dir", mount.path + "/cache")
        let findings = try #require(try json(run)["findings"] as? [[String: Any]])
        let found = try #require(findings.first { $0["subject"] as? String == "access times" })
        #expect(found["level"] as? String == level)
        // tmpfs is in memory, which is a finding, too.
        #expect(
            findings.contains { $0["subject"] as? String == "memory" && $0["level"] as? String == "fine" }
        )
    }

    // MARK: Limits

    @Test(arguments: [
        ("{", "it is not a JSON object"),
        ("{\"maximumSize\": \"2G\"}", "maximumSize is not a number of bytes"),
        ("{\"maxSize\": 1}", "unknown to this version: maxSize"),
    ])
    func `a mistake in the configuration file is found`(text: String, state: String) throws {
        #expect(try finding("config.json").level == "fine")
        makeFile(tool.directory + "/config.json", text)
        #expect(try finding("config.json") == ("risk", state))
    }

    @Test func `a limit that the disk can't satisfy, or that leaves no room, is found`() throws {
        #expect(try finding("limit") == ("fallback", "no limit on size"))
        #expect(try tool.run("config", "set", "max-size", "64M").status == 0)
        #expect(try finding("limit").level == "fine")
        #expect(try tool.run("config", "set", "max-size", "8191T").status == 0)
        #expect(try finding("limit").level == "risk")
        #expect(try tool.run("config", "set", "min-free", "1%").status == 0)
        #expect(try finding("limit").level == "fine")
        #expect(try tool.run("config", "set", "min-free", "8000T", "--force").status == 0)
        let unreachable = try finding("limit")
        #expect(unreachable.level == "risk" && unreachable.state.contains("must stay free"))
        // The command refuses this limit, but an editor can write it.
        makeFile(tool.directory + "/config.json", "{\"maximumSize\": 100000}")
        let found = try finding("limit")
        #expect(found.level == "risk" && found.state.contains("directories and control file alone take"))
    }
}
