// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of commands that fail: one line of error, the documented exit status, and no change.
@Suite(.takesTurns) struct CommandFailureTests {
    let tool: Tool

    init() throws {
        tool = try Tool()
    }

    /// Checks that a run failed with this status and one line of error that begins with "diskcache: ".
    func expectFailure(_ run: Tool.Run, _ status: Int32, _ words: String = "") {
        #expect(run.status == status, "\(run.error)")
        #expect(run.outputData.isEmpty)
        #expect(run.error.hasPrefix("diskcache: "), "\(run.error)")
        #expect(run.error.hasSuffix("\n") && run.error.split(separator: "\n").count == 1, "\(run.error)")
        #expect(words.isEmpty || run.error.contains(words), "\(run.error)")
    }

    // MARK: Arguments

    @Test(
        arguments: [
            [], ["nothing"], ["--nothing"], ["put"], ["put", ""], ["put", "a", "b", "c"],
            ["put", "k", "--ttl"],
            ["put", "k", "--ttl", "-5"], ["put", "k", "--ttl", "soon"], ["put", "k", "--ttl", "1e999"],
            ["put", "k", "--ttl", "99999999999999999999d"], ["put", "k", "--expires-at", "2030-02-30"],
            ["put", "k", "--ttl", "1", "--expires-at", "2030-01-01"], ["put", "k", "--renew"],
            ["put", "k", "--digest", "12"], ["put", "k", "--ttl", "1h30"],
            ["put", "k", "--meta", "x"], ["put", "k", "--meta", "=x"],
            ["put", "k", "--tag", ""], ["put", "k", "--meta", "a=1", "--meta", "a=2"],
            ["put", "k", "--ttl", "90000d"],
            ["get"], ["get", ""], ["get", "a", "b"], ["get", "k", "-o", ""], ["put", "k", ""],
            ["get", "--digest", "00", "k"], ["serve", "k"],
            ["serve", "--memory", "much"],
            ["get", "k", "--json=1"], ["rm"], ["rm", "a", ""],
            ["ls", "k"], ["ls", "--sort", "colour"], ["ls", "--reverse"], ["ls", "--limit", "-1"],
            ["ls", "--json", "--long"], ["info"], ["touch", "k", "--renew"], ["gc", "k"],
            ["gc", "--max-size", "big"], ["gc", "--max-age", "-1d"],
            ["gc", "--expired-only", "--max-size", "1G"],
            ["verify", "--sample", "0"], ["verify", "--sample", "0%"], ["bench", "--workers", "99999"],
            ["stats", "--watch", "soon"], ["stats", "--watch", "5s", "k"], ["gc", "--wait", "soon"],
            ["has"], ["has", "a", "b"], ["has", ""], ["dir", "k"], ["get", "--digest", "12"],
            ["get", "k", "--digest", String(repeating: "0", count: 64)],
            ["touch"], ["touch", "--soft"], ["touch", "k", "--soft", "--ttl", "1h"],
            ["touch", "k", "--soft", "--renew"],
            ["touch", "k", "--soft=soon"], ["touch", "k", "--tag", "t"],
            ["touch", "--soft", "k", "--tag", "t"],
            ["touch", "--soft", "--prefix", ""], ["rm", "--prefix", ""], ["rm", "--glob", ""],
            ["ls", "--prefix", "a", "--glob", "b"], ["ls", "--tag", ""], ["info", "--prefix", "a", "k"],
            ["stats", "--prefix", "a", "--quick"],
            ["gc", "--last", "--list"], ["gc", "--watch", "1s", "--list"], ["gc", "--prefix", ""],
            ["incr"], ["incr", ""], ["incr", "k", "many"], ["incr", "k", "--renew"], ["incr", "k", "1", "2"],
            ["lock"], ["lock", "n"], ["lock", "", "--", "true"],
            ["lock", "n", "--wait", "soon", "--", "true"],
            ["lock", "n", "--permits", "0", "--", "true"], ["lock", "n", "-p", "257", "--", "true"],
            ["ls", "--prefix", "a", "--prefix", "b"], ["gc", "--prefix", "a", "--prefix", "b"],
            ["ls", "--tag", "a", "--tag", "b"], ["stats", "--prefix", "a", "--prefix", "b"],
            ["stats", "--prefix", ""], ["info", "--prefix", "a", "--prefix", "b"],
            ["touch", "--soft", "5m", "k"], ["incr", "k", "-3"],
            ["gc", "--max"], ["clear", "k"], ["-d", "", "ls"], ["ls", "-d"], ["help", "nothing"],
        ] as [[String]]
    )
    func `invalid arguments are a usage error and create no directory`(words: [String]) throws {
        expectFailure(try tool.run(words), 64)
        #expect(!FileManager.default.fileExists(atPath: tool.directory))
    }

    @Test func `an argument that is not UTF-8 is refused`() throws {
        for words in ["put $'a\\xff'", "put a --tag $'\\xff'", "ls --prefix $'\\xff'"] {
            expectFailure(try tool.shell("\"$TOOL\" \(words) </dev/null"), 64, "UTF-8")
        }
    }

    @Test func `a key may contain the code points that encode non-UTF-8 bytes in paths`() throws {
        let key = "a\u{10ffff}"
        #expect(try tool.run("put", key, input: Data("value".utf8)).status == 0)
        #expect(try tool.run("get", key).output == "value")
    }

    @Test(arguments: ["--dir", "DISKCACHE_DIR", "XDG_CACHE_HOME", "HOME", "cd"])
    func `a directory path that is not UTF-8 is used unchanged`(way: String) throws {
        let run = try tool.shell(
            """
            place="$HOME/"$'d\\xff\\xc3\\xa4/\\xf4'; mkdir -p "$place"; TOOL=$(realpath "$TOOL"); unset DISKCACHE_DIR
            case \(way) in
            --dir) tool() { "$TOOL" --dir "$place/diskcache" "$@"; } ;;
            DISKCACHE_DIR) export DISKCACHE_DIR="$place/diskcache" ;;
            XDG_CACHE_HOME) export XDG_CACHE_HOME="$place" ;;
            HOME) export HOME="$place"; unset XDG_CACHE_HOME; mkdir "$HOME/.cache" ;;
            cd) cd "$place"; export DISKCACHE_DIR=diskcache ;;
            esac
            [ \(way) = --dir ] || tool() { "$TOOL" "$@"; }
            echo value | tool put key && tool get key && tool run -- echo ran && tool ls | head -1
            tool get key -o "$place/"$'out\\xfe' && cat "$place/"$'out\\xfe'
            tool run --ttl 1ms --stale 1h -- echo old; sleep 0.01; tool run --ttl 1ms --stale 1h -- echo old
            tool verify >/dev/null && tool gc >/dev/null && tool doctor | grep -c risk
            find "$place" -name format | wc -l; tool get absent --dir $'/nowhere\\xff'; echo $?
            [ -e "$(tool dir)/format" ] && echo there
            """
        )
        #expect(
            run.lines == ["value", "ran", "key", "value", "old", "old", "0", "2", "1", "there"],
            "\(run.lines) \(run.error)"
        )
    }

    @Test func `a message escapes the bytes of a path that are not UTF-8`() throws {
        let run = try tool.shell("\"$TOOL\" --dir /dev/null/$'\\xff' put key </dev/null")
        #expect(run.error.contains("/dev/null/\\xff"), "\(run.error)")
    }

    @Test(arguments: [
        ("DISKCACHE_DIR=", "is empty"),
        ("-u DISKCACHE_DIR HOME=here", "a relative path"),
    ])
    func `an environment without a directory is a usage error`(variables: String, words: String) throws {
        expectFailure(try tool.shell("env \(variables) \"$TOOL\" ls"), 64, words)
    }

    @Test func `unknown and ambiguous options have different messages`() throws {
        expectFailure(try tool.run("gc", "--bogus"), 64, "unknown option '--bogus'")
        expectFailure(try tool.run("gc", "--max", "1"), 64, "ambiguous option '--max': it can be --max-size,")
        let suggestion = "unknown option '--dyr-run' (did you mean --dry-run?): see"
        expectFailure(try tool.run("gc", "--dyr-run"), 64, suggestion)
    }

    @Test func `a message explains a missing = before a value or a missing -- before a number`() throws {
        let soft = "too many operands: give [KEY], and the value of --soft after =; see"
        expectFailure(try tool.run("touch", "--soft", "5m", "k"), 64, soft)
        expectFailure(try tool.run("incr", "k", "-3"), 64, "unknown option '-3' (put -- before")
    }

    @Test func `exceeding the file size limit is an error, not a signal`() throws {
        let run = try tool.shell("ulimit -f 1; head -c 100000 /dev/zero | \"$TOOL\" put k; exit $?")
        #expect(run.status > 1 && run.status < 128)
        #expect(run.error.contains("EFBIG") && run.error.split(separator: "\n").count == 1, "\(run.error)")
    }

    @Test func `put --if-absent does not read its input if there is a value`() throws {
        #expect(try tool.run("put", "k", input: Data("x".utf8)).status == 0)
        #expect(try tool.shell("timeout 20 \"$TOOL\" put k --if-absent /dev/zero").status == 1)
    }

    @Test func `a full output device is an output error`() throws {
        #expect(try tool.run("put", "k", input: Data("x".utf8)).status == 0)
        expectFailure(try tool.run("get", "k", "-o", "/dev/full"), 74)
    }

    @Test(.enabled(if: Mount.isAllowed, "nothing can be mounted here"))
    func `an output path on a read-only file system is an output error`() throws {
        #expect(try tool.run("put", "k", input: Data("x".utf8)).status == 0)
        let mount = try Mount("tmpfs", options: "ro")
        expectFailure(try tool.run("get", "k", "-o", mount.path + "/file"), 74, "EROFS")
    }

    @Test func `an output descriptor that is not open is refused, and no cache file replaces it`() throws {
        #expect(try tool.run("put", "k", input: Data("x".utf8)).status == 0)
        for number in 3...12 {
            for directory in ["/dev/fd", "/proc/self/fd"] {
                let run = try tool.shell("\"$TOOL\" get k -o \(directory)/\(number) \(number)>&-")
                expectFailure(run, 74, "it is not open")
            }
        }
        #expect(try tool.run("get", "k").output == "x")
        #expect(try tool.shell("\"$TOOL\" get k -o /dev/fd/7 7>&1").output == "x")
    }

    @Test func `an error message is one line, whatever the arguments contain`() throws {
        expectFailure(try tool.run("put", "k", "--ttl", "a\nb\u{1B}c"), 64, "a\\nb\\x1bc")
    }

    @Test func `keys of any bytes and lengths are stored`() throws {
        for key in [
            "new\nline", " ", "-", "../../etc/passwd", "ü\u{308}", String(repeating: "k", count: 100_000),
        ] {
            #expect(try tool.run("put", "--", key, input: Data(key.utf8)).status == 0)
            #expect(try tool.run("get", "--", key).output == key)
        }
        let long = String(repeating: "k", count: 1 << 20)
        let cache = try tool.cache()
        try cache.put("x", forKey: long)
        #expect(try cache.get(forKey: long)?.value == Data("x".utf8))
    }

    // MARK: Missing caches

    @Test func `each usage error has its message`() throws {
        expectFailure(try tool.run("colour"), 64, "unknown command 'colour':")
        expectFailure(try tool.run("gte", "k"), 64, "unknown command 'gte' (did you mean get?)")
        expectFailure(try tool.run(), 64, "missing command")
        expectFailure(try tool.run("get"), 64, "get: missing operand: give KEY")
        expectFailure(try tool.run("get", "a", "b"), 64, "get: too many operands")
        expectFailure(try tool.run("rm"), 64, "rm: missing operand")
        expectFailure(try tool.run("put", "k", "--ttl"), 64, "option '--ttl' needs a value")
        expectFailure(try tool.run("get", "k", "--stale=1"), 64, "option '--stale' takes no value")
        expectFailure(try tool.run("put", "k", "--ttl", "soon"), 64, "invalid time span 'soon'")
        expectFailure(try tool.run("gc", "--max-size", "big"), 64, "invalid size 'big'")
        expectFailure(try tool.run("ls", "--sort", "colour"), 64, "unknown order 'colour'")
        expectFailure(try tool.run("config", "set", "colour", "1"), 64, "unknown setting 'colour'")
    }

    @Test func `clear reports that the values are gone if another process is collecting`() throws {
        #expect(try tool.run("put", "k", input: Data("value".utf8)).status == 0)
        let process = try stoppedProcess(at: "sweep", in: tool.directory)
        let run = try tool.run("clear", "--yes")
        process.send(.kill)
        #expect(run.status == 75 && run.error.contains("the values are removed"), "\(run.error)")
        #expect(try tool.run("get", "k").status == 1)
    }

    @Test func `without a cache info reports a miss and its reason`() throws {
        let run = try tool.run("info", "k")
        #expect(run.status == 1)
        #expect(run.output == "key     k\nstatus  a miss: there is no cache at \(tool.directory)\n")
        let json = try tool.run("info", "k", "--json")
        let digest = Digest(of: Data("k".utf8))
        #expect(json.output == "{\"key\":\"k\",\"keyDigest\":\"\(digest)\",\"state\":\"absent\"}\n")
        #expect(!FileManager.default.fileExists(atPath: tool.directory))
    }

    @Test(arguments: [
        ["get", "k"], ["rm", "k"], ["touch", "k"], ["rm", "--tag", "t"], ["has", "k"],
        ["rm", "--prefix", "t"],
        ["rm", "--glob", "*"], ["touch", "--soft", "--prefix", "t"], ["info", "--prefix", "t"],
        ["get", "--digest", String(repeating: "0", count: 64)],
    ])
    func `without a cache every key is a miss`(words: [String]) throws {
        let run = try tool.run(words)
        #expect(run.status == 1 && run.outputData.isEmpty && run.errorData.isEmpty)
        #expect(!FileManager.default.fileExists(atPath: tool.directory))
    }

    @Test(arguments: ["ls", "gc", "stats", "verify", "doctor", "clear"])
    func `commands that report on a cache fail if there is none`(command: String) throws {
        expectFailure(try tool.run(command), 78, "`diskcache put` creates one")
        #expect(!FileManager.default.fileExists(atPath: tool.directory))
    }

    @Test(arguments: ["ls", "gc", "stats", "verify", "doctor", "clear"])
    func `an empty directory is not a cache either, and stays empty`(command: String) throws {
        try FileManager.default.createDirectory(atPath: tool.directory, withIntermediateDirectories: true)
        expectFailure(try tool.run(command), 78)
        #expect(try FileManager.default.contentsOfDirectory(atPath: tool.directory).isEmpty)
    }

    @Test func `put creates the directory and its parents`() throws {
        let deep = tool.path("a/b/c")
        #expect(try tool.run("put", "k", "-d", deep).status == 0)
        #expect(try tool.run("--dir", deep, "get", "k").status == 0)
    }

    @Test func `only the cache's own directory is private`() throws {
        let run = try tool.shell(
            "umask 022; \"$TOOL\" put -d \"$HOME/a/b/c\" k; cd \"$HOME\"; stat -c '%a %n' a a/b a/b/c"
        )
        #expect(run.lines == ["755 a", "755 a/b", "700 a/b/c"], "\(run.error)")
    }

    // MARK: Invalid directories

    @Test(arguments: [["put", "k"], ["get", "k"], ["ls"], ["gc"]])
    func `a file in place of the directory is refused`(words: [String]) throws {
        makeFile(tool.directory, "mine")
        expectFailure(try tool.run(words), 73, "not a directory")
    }

    @Test(arguments: [["put", "k"], ["get", "k"], ["clear", "--yes"], ["gc"], ["doctor"]])
    func `a directory with foreign files is refused and left unchanged`(words: [String]) throws {
        try FileManager.default.createDirectory(atPath: tool.directory, withIntermediateDirectories: true)
        makeFile(tool.directory + "/letter.txt", "mine")
        expectFailure(try tool.run(words), 78, "nothing was changed")
        #expect(try FileManager.default.contentsOfDirectory(atPath: tool.directory) == ["letter.txt"])
    }

    @Test(arguments: ["echo nonsense >", "mkfifo", "mkdir", "ln -s control"])
    func `the error message names an invalid format file`(making: String) throws {
        #expect(try tool.run("put", "k").status == 0)
        #expect(try tool.shell("cd \"$DISKCACHE_DIR\" && rm format && \(making) format").status == 0)
        expectFailure(try tool.run("get", "k"), 78, "its file `format`")
        #expect(tool.files("entries").count == 1)
    }

    @Test(arguments: [["put", "k"], ["get", "k"], ["gc"], ["clear", "--yes"]])
    func `a cache of a newer format is refused`(words: [String]) throws {
        #expect(try tool.run("put", "k").status == 0)
        try Data("diskcache 2\n".utf8).write(to: URL(fileURLWithPath: tool.directory + "/format"))
        expectFailure(try tool.run(words), 78, "newer")
        #expect(tool.files("entries").count == 1)
    }

    /// Runs the command as the user nobody.
    func asNobody(_ words: String) throws -> Tool.Run {
        try tool.shell("\(Self.nobody) \"$TOOL\" \(words) </dev/null")
    }

    static let nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups"

    /// Whether this process can run the command as another user, which takes root and access to the command and its
    /// libraries.
    static let canBecomeNobody: Bool = {
        do {
            return try Tool().shell("\(nobody) \"$TOOL\" --version").status == 0
        } catch {
            return false
        }
    }()

    @Test(.enabled(if: canBecomeNobody, "nobody can't run the command here"))
    func `a directory without read permission is a permission error`() throws {
        #expect(try tool.run("put", "k").status == 0)
        for words in ["put k", "get k", "ls", "gc", "doctor"] {
            expectFailure(try asNobody(words), 77, "as the user who owns it")
        }
    }

    @Test(.enabled(if: canBecomeNobody, "nobody can't run the command here"))
    func `a read-only directory allows reads, and writes are a permission error`() throws {
        #expect(try tool.run("put", "k", input: Data("x".utf8)).status == 0)
        _ = try tool.shell("chmod -R a+rX \"$DISKCACHE_DIR\"")
        #expect(try asNobody("get k").output == "x")
        #expect(try asNobody("ls").output == "k\n")
        #expect(try asNobody("stats").status == 0)
        expectFailure(try asNobody("put k"), 77)
        expectFailure(try asNobody("rm k"), 77)
        expectFailure(try asNobody("gc"), 77)
        let doctor = try asNobody("doctor")
        #expect(doctor.status == 78 && doctor.output.contains("not writable by user 65534"))
    }

    // MARK: Files planted by other users

    @Test(.enabled(if: canBecomeNobody, "nobody can't run the command here"))
    func `get -o never writes through a file, link or pipe that another user has planted`() throws {
        #expect(try tool.run("put", "k", input: Data("value".utf8)).status == 0)
        let run = try tool.shell(
            """
            cd "$HOME"; mkdir open; chmod 1777 open; chmod 755 .; echo precious > precious; umask 022
            \(Self.nobody) sh -c 'umask 0; : > open/file; chmod 6777 open/file; ln -s ../precious open/link
            ln -s .. open/up; ln -s new open/dangling; mkfifo open/pipe'
            for name in file link up/precious up/new dangling pipe; do
                "$TOOL" get k -o open/$name 2>error; echo $? $name $(grep -c 'links and pipes that other users' error)
            done
            stat -c '%a %u %s %F' open/file; cat precious; ls
            """
        )
        let lines = [
            "0 file 0", "77 link 1", "77 up/precious 1", "77 up/new 1", "77 dangling 1", "77 pipe 1",
            "644 0 5 regular file", "precious", "cache", "error", "open", "precious",
        ]
        #expect(run.lines.filter { !$0.contains("-") } == lines, "\(run.output)\(run.error)")
    }

    @Test(.enabled(if: canBecomeNobody, "nobody can't run the command here"))
    func `an unprivileged user may write through links owned by root or by the same user`() throws {
        let run = try tool.shell(
            """
            cd "$HOME"; chmod 755 .; mkdir own; chown 65534 own; ln -s own by-root
            export DISKCACHE_DIR="$HOME/own/cache"; as() { \(Self.nobody) "$@"; }
            echo v | as "$TOOL" put k; as ln -s out own/link; as "$TOOL" get k -o by-root/link
            as "$TOOL" get k -o /dev/null; as "$TOOL" get k -o /dev/stdout; as "$TOOL" get k -o /dev/fd/1 | cat
            as stat -c '%u %s' own/out
            """
        )
        #expect(run.lines == ["v", "v", "65534 2"], "\(run.error)")
    }

    @Test(.enabled(if: canHideProc, "only root can take /proc away from a process"))
    func `every command works without /proc`() throws {
        let run = try tool.shell(
            """
            unshare -m bash -c 'mount --make-rprivate / && umount -l /proc && cd "$HOME" || exit 99
            echo v | "$TOOL" put k && "$TOOL" get k -o /dev/stdout && "$TOOL" get k -o file && cat file && "$TOOL" ls
            "$TOOL" run --ttl 1ms --stale 1h -- echo once; sleep 0.01; "$TOOL" run --ttl 1ms --stale 1h -- echo once
            "$TOOL" gc >/dev/null && "$TOOL" verify >/dev/null && "$TOOL" stats >/dev/null && echo fine'
            """
        )
        #expect(run.lines == ["v", "v", "k", "once", "once", "fine"], "\(run.error)")
        #expect(run.errorData.isEmpty, "\(run.error)")
    }

    @Test(.enabled(if: canHideProc, "only root can take /dev away from a process"))
    func `without /dev/null a command runs with empty input`() throws {
        let run = try tool.shell(
            """
            unshare -m bash -c 'mount --make-rprivate / && mount -t tmpfs tmpfs /dev || exit 99
            echo v | "$TOOL" run --key empty -- wc -c; echo v | "$TOOL" run --key empty -- wc -c
            "$TOOL" lock L -- echo locked; echo v | "$TOOL" put k && "$TOOL" get k'
            """
        )
        #expect(run.lines == ["0", "0", "locked", "v"], "\(run.lines) \(run.error)")
    }

    static let canHideProc: Bool = {
        do {
            let script =
                "unshare -m sh -c 'mount --make-rprivate / && umount -l /proc && ! [ -e /proc/self ]'"
            return try Tool().shell(script).status == 0
        } catch {
            return false
        }
    }()

    // MARK: Invalid input and output

    @Test func `a missing input file is an input error and creates no directory`() throws {
        expectFailure(try tool.run("put", "k", tool.path("missing")), 74, "missing")
        expectFailure(try tool.run("put", "k", tool.path("")), 74, "directory")
        #expect(!FileManager.default.fileExists(atPath: tool.directory))
    }

    @Test func `closed input is an error, not an empty value`() throws {
        expectFailure(try tool.shell("\"$TOOL\" put k <&-"), 74, "standard input")
        #expect(!FileManager.default.fileExists(atPath: tool.directory))
    }

    @Test func `closed output streams become /dev/null, so that no file gets their numbers`() throws {
        // The command blocks while it opens a pipe without a writer. Its streams are checked until it gets there.
        let run = try tool.shell(
            """
            mkfifo "$HOME/pipe"; "$TOOL" put k "$HOME/pipe" >&- 2>&- & for ((try = 0; try < 100000; try++)); do
                links="$(readlink /proc/$!/fd/1) $(readlink /proc/$!/fd/2)"
                [ "$links" = "/dev/null /dev/null" ] && break; sleep 0.005
            done; : > "$HOME/pipe"; wait; echo "$links"
            """
        )
        #expect(run.output == "/dev/null /dev/null\n")
    }

    @Test(arguments: ["get k", "ls", "ls --json", "info k", "gc", "stats", "--help"])
    func `output that can't be written is an error`(words: String) throws {
        #expect(try tool.run("put", "k", input: Data("x".utf8)).status == 0)
        expectFailure(try tool.shell("\"$TOOL\" \(words) >/dev/full"), 74, "write the output")
        expectFailure(try tool.shell("\"$TOOL\" \(words) >&-"), 74, "write the output")
    }

    @Test(arguments: ["", "trap '' PIPE; "])
    func `a reader that closes the pipe early causes no error message`(prefix: String) throws {
        let bytes = Data(repeating: 7, count: 1 << 20)
        #expect(try tool.run("put", "k", input: bytes).status == 0)
        let run = try tool.shell(prefix + "\"$TOOL\" get k | head -c 1 >/dev/null; exit ${PIPESTATUS[0]}")
        #expect(run.status != 0 && run.errorData.isEmpty)
    }
}
