// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of `diskcache verify`: samples and output.
@Suite(.takesTurns) struct CommandVerifyTests {
    let tool: Tool
    let cache: SharedCache

    init() throws {
        tool = try Tool()
        cache = try tool.cache()
    }

    private func damage(_ value: String) throws -> String {
        let digest = Digest(of: Data(value.utf8)).description
        let object = "$DISKCACHE_DIR/objects/\(digest.prefix(2))/\(digest)"
        let run = try tool.shell("chmod u+w \(object) && printf x | dd of=\(object) conv=notrunc status=none")
        #expect(run.status == 0)
        return digest
    }

    @Test func `a sample reports its share of all values`() throws {
        for number in 0..<8 { try cache.put("value \(number)", forKey: "k\(number)") }
        let run = try tool.run("verify", "--sample", "2")
        #expect(run.status == 0)
        #expect(run.output.hasSuffix(" 2 values, 14 B: a sample of 25.0 % of 8 values\n"))
        let report = try json(tool.run("verify", "--sample", "100%", "--json"))
        #expect(report["objects"] as? Int == 8 && report["listedObjects"] as? Int == 8)
        #expect(report["entries"] as? Int == 8 && report["orphans"] == nil)
        #expect(try json(tool.run("verify", "--json"))["orphans"] as? Int == 0)
    }

    @Test(arguments: ["101%", "%", "-1%", "1.5", "x", "nan%"])
    func `an invalid sample is refused`(sample: String) throws {
        let run = try tool.run("verify", "--sample", sample)
        #expect(run.status == 64 && run.error.hasPrefix("diskcache: verify: --sample: "))
    }

    @Test func `verify prints one line per damaged file, and their number`() throws {
        try cache.put("first", forKey: "a")
        try cache.put("second", forKey: "b")
        try cache.put("sound", forKey: "c")
        let first = try damage("first")
        let second = Digest(of: Data("second".utf8)).description
        try FileManager.default.removeItem(
            atPath: "\(tool.directory)/objects/\(second.prefix(2))/\(second)"
        )
        let run = try tool.run("verify")
        #expect(run.status == 65 && run.errorData.isEmpty)
        let entry = Digest(of: Data("b".utf8)).description
        #expect(
            run.lines == [
                "corrupt value: \(first)", "entry without its value: \(entry)",
                "damaged: 2, deleted: 0; checked: 3 keys, 2 values, 10 B",
                "remove it with `diskcache verify --repair`",
            ]
        )
        let report = try json(tool.run("verify", "--json"))
        #expect(report["corruptObjectCount"] as? Int == 1 && report["danglingEntryCount"] as? Int == 1)
        let repaired = try tool.run("verify", "--repair")
        #expect(repaired.status == 65 && repaired.output.contains("damaged: 3, deleted: 3"))
        #expect(try tool.run("verify").output == "sound: 1 key, 1 value, 5 B\n")
    }

    @Test func `verify, doctor and stats detect a copy without extended attributes, and gc empties it`()
        throws
    {
        for number in 0..<40 { try cache.put("value \(number)", forKey: "k\(number)") }
        let entries = tool.files("entries").map { "\(tool.directory)/entries/\($0)" }
        // On a file system without attributes a copy loses nothing.
        guard try entries.allSatisfy({ try Data(contentsOf: URL(fileURLWithPath: $0)).isEmpty }) else {
            return
        }
        #expect(try tool.shell("cp -r $DISKCACHE_DIR $HOME/copy").status == 0)
        let copy = ["--dir", tool.path("copy")]
        #expect(try tool.run(copy + ["ls"]).output.isEmpty)
        let run = try tool.run(copy + ["verify"])
        #expect(run.status == 65)
        #expect(run.output.hasPrefix("keys without their metadata: 40 of 40; it is in extended attributes"))
        #expect(run.output.hasSuffix("not sound: 40 keys, 40 values, 310 B\n"))
        let report = try json(tool.run(copy + ["verify", "--json"]))
        #expect(report["metadataIsLost"] as? Bool == true && report["isClean"] as? Bool == false)
        #expect(try tool.run(copy + ["doctor"]).output.contains("40 of 40 have lost their metadata"))
        let stats = try json(tool.run(copy + ["stats", "--json"]))
        #expect(stats["entries"] as? Int == 0 && stats["unreadableEntries"] as? Int == 40)
        #expect(try tool.run(copy + ["gc"]).status == 0)
        #expect(try tool.run(copy + ["verify"]).output == "sound: 0 keys, 0 values, 0 B\n")
        #expect(try tool.run("doctor").output.contains("have their metadata"))
    }

    @Test func `verify --repair repairs everything even if its output is not read`() throws {
        try cache.put("first", forKey: "a")
        _ = try damage("first")
        _ = try tool.shell("trap '' PIPE; \"$TOOL\" verify --repair | true")
        #expect(try tool.run("verify").status == 0)
    }
}
