// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of the completion scripts in their shells.
@Suite(.takesTurns) struct CompletionScriptTests {
    let tool: Tool

    init() throws {
        tool = try Tool()
    }

    /// Returns whether a shell is installed; without it the tests of its script are skipped.
    static func isInstalled(_ shell: String) -> Bool {
        ["/bin/", "/usr/bin/", "/usr/local/bin/"].contains {
            FileManager.default.isExecutableFile(atPath: $0 + shell)
        }
    }

    @Test func `bash parses its script without an error`() throws {
        try check("bash")
    }

    @Test(.enabled(if: isInstalled("zsh"), "there is no zsh: its script is not tried"))
    func `zsh parses its script without an error`() throws {
        try check("zsh")
    }

    @Test(.enabled(if: isInstalled("fish"), "there is no fish: its script is not tried"))
    func `fish parses its script without an error`() throws {
        try check("fish")
    }

    private func check(_ shell: String) throws {
        let run = try tool.shell("\"$TOOL\" completions \(shell) | \(shell) -n /dev/stdin")
        #expect(run.status == 0 && run.errorData.isEmpty && run.outputData.isEmpty, "\(run.error)")
    }

    @Test(.enabled(if: isInstalled("fish"), "there is no fish: its script is not tried"))
    func `fish completes like bash`() throws {
        let cache = try tool.cache()
        for key in ["thumb:17", "thumb:18", "-x", "a b"] { try cache.put("v", forKey: key) }
        #expect(try fish("diskcache get thu") == ["thumb:17", "thumb:18"])
        #expect(try fish("diskcache get ") == ["a b", "thumb:17", "thumb:18"])
        #expect(try fish("diskcache get -").allSatisfy { $0 != "-x" })
        #expect(try fish("diskcache get -- -") == ["-x"])
        #expect(try fish("diskcache ls --sort ") == ["access", "age", "expires", "key", "size"])
        #expect(try fish("diskcache -d /tmp he") == ["help"])
        #expect(try fish("diskcache --dir=\(tool.directory) run --key=thumb:17") == ["--key=thumb:17"])
        #expect(try fish("diskcache run-").isEmpty)
    }

    /// Returns the completions of fish without their descriptions.
    private func fish(_ line: String) throws -> [String] {
        let run = try tool.shell(
            """
            PATH=$(dirname "$TOOL"):$PATH
            exec fish --no-config -c '"$TOOL" completions fish | source; complete -C "\(line)"'
            """
        )
        #expect(run.status == 0 && run.errorData.isEmpty, "\(run.error)")
        return run.lines.map { String($0.prefix { $0 != "\t" }) }
    }

    // MARK: bash

    /// Returns the completions of bash for a line with the cursor at its end: the words, or the name of a completion that
    /// readline does itself.
    private func bash(_ line: String) throws -> [String] {
        let run = try tool.shell(
            """
            source <("$TOOL" completions bash)
            compopt() { COMPREPLY+=("$2"); }
            COMP_LINE=$(cat; printf x)
            COMP_LINE=${COMP_LINE%x}
            COMP_POINT=${#COMP_LINE}
            COMP_WORDS=() rest=$COMP_LINE
            # Cut as readline does: at blanks, and before and behind each run of the other characters.
            while [[ $rest =~ ^[[:blank:]]*(([^[:blank:]:=@]|\\\\.)+|[:=@]+) ]]; do
                COMP_WORDS+=("${BASH_REMATCH[1]}")
                rest=${rest:${#BASH_REMATCH[0]}}
            done
            if [[ $rest || $COMP_LINE != *[![:blank:]] ]]; then COMP_WORDS+=(""); fi
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            _diskcache "$TOOL"
            if ((${#COMPREPLY[@]})); then printf '%s\\n' "${COMPREPLY[@]}"; fi
            """,
            input: Data(line.utf8)
        )
        #expect(run.status == 0 && run.errorData.isEmpty, "\(line): \(run.error)")
        return run.lines
    }

    @Test(arguments: [
        ("diskcache cl", ["clear"]), ("diskcache --ver", ["--version"]), ("diskcache -d /tmp he", ["help"]),
        ("diskcache --dir=/tmp he", ["help"]), ("diskcache help verif", ["verify"]),
        ("diskcache run-", []), ("diskcache no-such ", []), ("diskcache complete-", []),
        ("diskcache config s", ["set"]), ("diskcache config set remote.li", ["remote.limit"]),
        ("diskcache fetch --mode ca", ["cache-first"]), ("diskcache fetch -o ", ["default"]),
        ("diskcache pus", ["push"]), ("diskcache config set max-s", ["max-size"]),
        ("diskcache ls --so", ["--sort"]), ("diskcache ls --sort s", ["size"]),
        ("diskcache ls --sort=s", ["size"]),
        ("diskcache ls --sort=", ["key", "size", "age", "access", "expires"]),
        ("diskcache ls --limit ", []), ("diskcache ls x ", []),
        ("diskcache put k /tm", ["default"]), ("diskcache put k f ", []),
        ("diskcache put --ttl 1 k ", ["default"]),
        ("diskcache get -o ", ["default"]), ("diskcache --dir ", ["dirnames"]),
        ("diskcache ls --dir=/t", ["dirnames"]),
        ("diskcache get -- --he", []), ("diskcache completions ", ["bash", "zsh", "fish"]),
        ("diskcache run --ttl 1 -- ls --he", ["default"]), ("diskcache run ls --he", ["default"]),
        ("diskcache run --sco", ["--scope"]), ("diskcache bench --work", ["--workers"]),
    ])
    func `bash completes commands, options, values and files`(line: String, words: [String]) throws {
        #expect(try bash(line) == words)
    }

    @Test func `bash completes only commands of the overview`() throws {
        let overview = try tool.run("--help").output
        let names = try bash("diskcache ")
        #expect(names.count > 12)
        for name in names where name != "help" { #expect(overview.contains("\n  \(name) ")) }
    }

    @Test func `bash completes keys, quoted and without the text before the last colon`() throws {
        let cache = try tool.cache()
        let keys = ["thumb:17", "a b", "it's", "$(touch pwned)", "`x`", "-x", "e\u{1B}[2J", "m=1@z", "ünï"]
        for key in keys { try cache.put("v", forKey: key) }
        #expect(try bash("diskcache get thu") == ["thumb:17"])
        #expect(try bash("diskcache get thumb:") == ["17"])
        #expect(try bash("diskcache get thumb:1") == ["17"])
        #expect(try bash("diskcache run --key=thumb:1") == ["17"])
        #expect(try bash("diskcache run --key=th") == ["thumb:17"])
        #expect(try bash("diskcache get m=1@") == ["z"])
        #expect(try bash("diskcache get a") == ["a\\ b"])
        #expect(try bash("diskcache get a\\ ") == ["a\\ b"])
        #expect(try bash("diskcache rm x it").isEmpty == false)
        #expect(try bash("diskcache get 'a").isEmpty)
        #expect(try bash("diskcache get $(touch pwned)").isEmpty)
        try cache.put("v", forKey: "$x:y")
        #expect(try bash("diskcache get $x:").isEmpty)
        #expect(try bash("diskcache get -- -") == ["-x"])
        #expect(try bash("diskcache get e").isEmpty)
        let all = try bash("diskcache get ")
        #expect(all.contains("\\$\\(touch\\ pwned\\)") && all.contains("it\\'s") && !all.contains("-x"))
        #expect(
            try tool.shell("for k in \(all.joined(separator: " ")); do \"$TOOL\" get -- \"$k\"; done").output
                .count == all.count
        )
    }

    @Test func `completed keys are those of the directory on the line`() throws {
        try SharedCache(at: tool.path("other dir")).put("v", forKey: "there")
        #expect(try bash("diskcache get th").isEmpty)
        #expect(try bash("diskcache --dir \(tool.path("other")) get th").isEmpty)
        #expect(try tool.shell("mv '\(tool.path("other dir"))' '\(tool.path("other"))'").status == 0)
        #expect(try bash("diskcache --dir \(tool.path("other")) get th") == ["there"])
        #expect(try bash("diskcache get --dir=\(tool.path("other")) th") == ["there"])
        #expect(try bash("diskcache -d\(tool.path("other")) get th") == ["there"])
        #expect(try bash("diskcache -d ~/other get th") == ["there"])
    }

    @Test func `completing keys creates no directory, and a foreign directory causes no error`() throws {
        #expect(try tool.run("complete", "--", "get", "x").output == "words\n")
        #expect(!FileManager.default.fileExists(atPath: tool.directory))
        #expect(try bash("diskcache --dir /etc get a").isEmpty)
    }

    @Test func `an unknown shell is refused in one line`() throws {
        let run = try tool.run("completions", "tcsh")
        #expect(run.status == 64 && run.error.hasPrefix("diskcache: completions: unknown shell 'tcsh'"))
    }
}
