// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Tests of collections in directories that are partly unreadable.
@Suite(.takesTurns) struct UnreadableTests {
    private let tool: Tool

    init() throws {
        tool = try Tool()
    }

    private func shell(_ words: String) throws -> String {
        let run = try tool.shell(words)
        #expect(run.status == 0, "\(words): \(run.error)")
        return run.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private func collect(_ options: String) throws -> [String: Any] {
        let text = try shell("\(CommandFailureTests.nobody) \"$TOOL\" gc --json \(options) </dev/null")
        return try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    @Test(.enabled(if: CommandFailureTests.canBecomeNobody, "nobody can't run the command here"))
    func `an unreadable shard is skipped and reported, and objects that it may need are kept`() throws {
        for key in ["hidden", "kept", "dropped"] {
            #expect(try tool.run("put", key, input: Data("value of \(key)".utf8)).status == 0)
        }
        #expect(
            try tool.run("put", "kept", input: Data("new".utf8)).status == 0,
            "its old value is an orphan now"
        )
        let digest = try shell("printf hidden | sha256sum | cut -c1-2")
        let shard = "\"$DISKCACHE_DIR\"/entries/\(digest)"
        _ = try shell("chown -R 65534:65534 \"$DISKCACHE_DIR\" && chown root \(shard) && chmod 700 \(shard)")

        let report = try collect("--max-entries 1")
        #expect(report["unreadable"] as? [String] == ["entries/\(digest)"])
        #expect(report["isComplete"] as? Bool == true)
        let removed = try #require(report["removed"] as? [String: Any])
        #expect(removed.keys.sorted() == ["entries"], "an orphan may be the hidden entry's")
        // The orphan, and the value of the unreadable entry.
        #expect(report["spared"] as? Int == 2)

        let verified = try tool.shell("\(CommandFailureTests.nobody) \"$TOOL\" verify </dev/null").output
        #expect(verified.contains("can't be read: entries/\(digest)\n"), "\(verified)")
        let kept = "values without a readable key: 2; gc keeps them until it can read all keys"
        #expect(verified.contains(kept), "\(verified)")

        _ = try shell("chown -R 65534:65534 \"$DISKCACHE_DIR\"")
        #expect(try shell("\"$TOOL\" get hidden") == "value of hidden")
        let second = try collect("")
        #expect(second["unreadable"] as? [String] == [])
        #expect((second["removed"] as? [String: Any])?.keys.sorted() == ["orphan"])
        #expect(try shell("\"$TOOL\" get hidden") == "value of hidden")
    }

    @Test(.enabled(if: CommandFailureTests.canBecomeNobody, "nobody can't run the command here"))
    func `an unreadable shard of objects makes no entry dangling`() throws {
        #expect(try tool.run("put", "key", input: Data("value".utf8)).status == 0)
        let digest = try shell("printf value | sha256sum | cut -c1-2")
        let shard = "\"$DISKCACHE_DIR\"/objects/\(digest)"
        _ = try shell("chown -R 65534:65534 \"$DISKCACHE_DIR\" && chown root \(shard) && chmod 700 \(shard)")
        let report = try collect("")
        #expect(report["unreadable"] as? [String] == ["objects/\(digest)"])
        #expect((report["removed"] as? [String: Any])?.isEmpty == true)
        #expect(try shell("\"$TOOL\" get key") == "value")
    }
}
