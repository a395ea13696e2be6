// SPDX-License-Identifier: Apache-2.0

import DiskCacheHTTP
import Foundation
import TestSupport
import Testing

@testable import DiskCacheCommand
@testable import diskcache_net

/// URLs, fields and plans of `fetch`, parsed from the command line.
@Suite(.takesTurns) struct FetchTextTests {
    @Test(arguments: [
        ("http://me:secret@host/a?b=c#d", "http://host/a?b=c#d"), ("https://host/a@b", "https://host/a@b"),
        ("http://host?q=a@b", "http://host?q=a@b"), ("http://a@b@host/", "http://host/"),
        ("nothing", "nothing"), ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
        ("http://me:secret/x@host/", "http://host/"), ("http://me:secret#x@host/", "http://host/"),
        ("me:secret@host/", "host/"), ("http:/me:secret@host/", "host/"),
        ("http://me:secret@\u{301}host/", "http://\u{301}host/"),
    ])
    func `only the user and the password are removed from a URL`(url: String, shown: String) {
        #expect(FetchText.withoutCredentials(url) == shown)
    }

    @Test func `a message names a URL without its query`() {
        #expect(FetchText.place("https://me:secret@host/a?token=x#y") == "https://host/a")
    }

    @Test(arguments: [
        "", "host/", "ftp://host/", "http:/host", "http://", "http://host/a b", "file:///etc/passwd",
    ])
    func `anything but an HTTP URL is refused`(text: String) {
        #expect { _ = try FetchText.url(text) } throws: { ($0 as? Failure)?.status == .usage }
    }

    @Test func `an error about a URL has no password`() {
        #expect {
            _ = try FetchText.url("ftp://me:secret@host/")
        } throws: {
            ($0 as? Failure)?.message.contains("secret") == false
        }
    }

    @Test(arguments: [
        ("Accept: text/html", "Accept", "text/html"), ("A:b:c", "A", "b:c"), ("X-Empty:", "X-Empty", ""),
        ("A:\t b \t", "A", "b"),
    ])
    func `a field is a name, a colon and a value`(line: String, name: String, value: String) throws {
        #expect(try FetchText.field(line) == (name, value))
    }

    @Test(arguments: ["", "nothing", ": value", "a name: value", "A: b\r\nC: d", "A: \u{7F}"])
    func `an invalid field is refused`(line: String) {
        #expect { _ = try FetchText.field(line) } throws: { ($0 as? Failure)?.status == .usage }
    }

    @Test func `a file of fields has a field in each line, and may have comments`() throws {
        let place = try TemporaryDirectory()
        let path = place.path + "/fields"
        try Data("A: 1\r\n\r\n# B: 2\n  C: 3\n".utf8).write(to: URL(fileURLWithPath: path))
        #expect(try FetchText.fields("@" + path).map { "\($0.name): \($0.value)" } == ["A: 1", "C: 3"])
        #expect { _ = try FetchText.fields("@\(path)-") } throws: { ($0 as? Failure)?.status == .inputOutput }
    }

    @Test func `a digest can be preceded by its algorithm`() throws {
        let digits = String(repeating: "ab", count: 32)
        #expect(try FetchText.digest(digits) == "sha256:" + digits)
        #expect(try FetchText.digest("SHA256:" + digits.uppercased()) == "sha256:" + digits)
        #expect { _ = try FetchText.digest("md5:00") } throws: { ($0 as? Failure)?.status == .usage }
    }

    // MARK: Plans

    private func plan(_ words: String...) throws -> FetchPlan {
        var arguments = try FetchCommand.parse(words.map { Array($0.utf8) }, directory: nil)
        try FetchCommand.check(&arguments)
        return try FetchPlan(arguments)
    }

    @Test func `each URL gets all options, and its own file`() throws {
        let plan = try plan(
            "-t",
            "1h",
            "--stale-if-error",
            "1d",
            "--max-size",
            "1K",
            "--offline",
            "-H",
            "A: b",
            "--tag",
            "t",
            "--retries",
            "0",
            "-o",
            "x",
            "-o",
            "-",
            "http://a/",
            "http://b/"
        )
        #expect(plan.requests.map(\.url) == ["http://a/", "http://b/"] && plan.files == ["x", nil])
        let request = plan.requests[1]
        #expect(request.timeToLive == .seconds(3600) && request.staleIfError == .seconds(86_400))
        #expect(request.maximumSize == 1024 && request.mode == .offline && request.retries == 0)
        #expect(request.fields.map(\.name) == ["A"] && request.fields.map(\.value) == ["b"])
        #expect(request.tags == ["t"])
        #expect(plan.parallel == 1 && !plan.includesHead && !plan.isVerbose && !plan.isJSON)
    }

    @Test func `the help names all modes`() throws {
        #expect(FetchCommand.modes == FetchMode.allCases.map(\.rawValue).joined(separator: ", "))
        for mode in FetchMode.allCases { #expect(try FetchText.mode(mode.rawValue) == mode) }
        #expect { _ = try FetchText.mode("ofline") } throws: { ($0 as? Failure)?.status == .usage }
    }

    @Test func `a body that can't be written directly goes through a temporary file`() throws {
        #expect(try plan("-o", "x", "http://a/").target(0) == .file("x"))
        #expect(try plan("-i", "-o", "x", "http://a/").target(0) == nil)
        #expect(try plan("-p", "2", "http://a/", "http://b/").target(1) == nil)
        #expect(try plan("--json", "http://a/").target(0) == .file("/dev/null"))
        #expect(try plan("--json", "-o", "x", "http://a/").target(0) == .file("x"))
    }
}
