// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import DiskCacheCommand

/// The manual page, and its roff source.
@Suite(.takesTurns) struct ManualTests {
    static func isInstalled(_ program: String) -> Bool {
        FileManager.default.isExecutableFile(atPath: "/usr/bin/" + program)
    }

    /// Returns the lines that groff renders from `lines`, trimmed and without empty lines.
    static func rendered(_ lines: [String]) throws -> [String] {
        let page = [".TH X 1", ".nh", ".ad l", ".SH X"] + lines
        let run = try Tool().shell(
            "groff -man -ww -Tutf8 -P-c -P-b -P-u -rLL=300n",
            input: Data((page.joined(separator: "\n") + "\n").utf8)
        )
        #expect(run.status == 0 && run.errorData.isEmpty, "\(run.error)")
        let text = run.lines.map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
        // Without the header, the heading "X" and the footer.
        return Array(text.dropFirst(2).dropLast())
    }

    @Test(arguments: [
        (".PP is text", "\\&.PP is text"), ("'tis", "\\&\\(aqtis"), ("a\\b", "a\\eb"), ("--dir", "\\-\\-dir"),
        ("~/x `y` \"z\" ^", "\\(ti/x \\(gay\\(ga \\(dqz\\(dq \\(ha"), ("KEY…", "KEY..."), ("…", "\\&..."),
        ("ü🙂", "\\[u00FC]\\[u1F642]"),
    ])
    func `text is escaped so that roff does not interpret it`(text: String, line: String) {
        #expect(Roff.line(text) == line)
    }

    @Test(
        .enabled(if: isInstalled("groff"), "there is no groff: no text is rendered"),
        arguments: [
            ".PP is text", "'tis", "..", ".", "a\\fBb\\n(.s", "\\", "--dir -", "~/x^ `y` \"z\"", "a\\\\n",
            "ü",
            "\\&.x",
        ]
    )
    func `groff renders escaped text unchanged`(text: String) throws {
        #expect(try Self.rendered([Roff.line(text)]) == [text])
        #expect(
            try Self.rendered(Roff.item(Roff.bold(text + "tag so long"), "it")) == [
                text + "tag so long", "it",
            ]
        )
        #expect(try Self.rendered(Roff.paragraphs("X:\n  " + text)) == ["X:", text])
    }

    @Test func `words between paired backticks are bold`() {
        #expect(Roff.prose("see `x -y`.") == "see \\fBx \\-y\\fR.")
        #expect(Roff.prose("`x` it") == "\\fBx\\fR it")
        #expect(Roff.prose("a ` b") == "a \\(ga b")
        #expect(Roff.paragraphs("see `x\n.y` it\n.z") == [".PP", "see \\fBx\n\\&.y\\fR it\n\\&.z"])
        #expect(Roff.prose(".`x`") == "\\&.\\fBx\\fR")
    }

    @Test func `indented lines are examples that keep their line breaks`() {
        #expect(
            Roff.paragraphs("One\ntwo:\n  a -b\n    c\nthree\n\nfour") == [
                ".PP", "One\ntwo:", ".RS 4", ".EX", "a \\-b", "  c", ".EE", ".RE", "three", ".PP", "four",
            ]
        )
        #expect(Roff.paragraphs("  a") == [".PP", ".RS 4", ".EX", "a", ".EE", ".RE"])
    }

    @Test func `the page has its sections in the usual order`() {
        let titles = Manual.page(of: DiskCacheTool.shown).split(separator: "\n").filter {
            $0.hasPrefix(".SH ")
        }.map {
            $0.dropFirst(4)
        }
        #expect(
            titles == [
                "NAME", "SYNOPSIS", "\"DESCRIPTION\"", "\"OPTIONS\"", "\"COMMANDS\"", "\"ENVIRONMENT\"",
                "\"FILES\"", "\"EXIT STATUS\"", "\"EXAMPLES\"", "\"SEE ALSO\"",
            ]
        )
    }

    @Test func `the page has every command with every option, but no hidden command`() throws {
        func sections(_ command: any Command.Type) -> ArraySlice<String> {
            let title = ".SS \"\(Roff.escaped(command.name))\"\n"
            return Manual.page(of: DiskCacheTool.shown).components(separatedBy: title).dropFirst()
        }
        #expect(DiskCacheTool.hidden.allSatisfy { sections($0).isEmpty })
        for command in DiskCacheTool.shown {
            let section = try #require(sections(command).first).components(separatedBy: "\n.S")[0]
            for option in command.options {
                #expect(section.contains(Roff.bold("--\(option.specification.name)")))
            }
        }
    }

    @Test func `the page has every exit status of the overview`() {
        for status in [0, 1, 64, 65, 69, 70, 73, 74, 75, 77, 78] {
            #expect(Manual.page(of: DiskCacheTool.shown).contains("\n.TP\n\\fB\(status)\\fR\n"))
        }
    }

    @Test(.enabled(if: isInstalled("man"), "there is no man: the page is not rendered"))
    func `man shows the page without a warning`() throws {
        let run = try Tool().shell(
            """
            "$TOOL" man-page > "$DISKCACHE_DIR.1" && MANWIDTH=80 man --warnings -l "$DISKCACHE_DIR.1"
            """
        )
        #expect(run.status == 0 && run.errorData.isEmpty, "\(run.error)")
        #expect(run.output.contains("diskcache - a cache directory"))
    }

    @Test(.enabled(if: isInstalled("groff"), "there is no groff: the page is not checked"))
    func `groff renders the page without a warning`() throws {
        let run = try Tool().shell("\"$TOOL\" man-page | groff -man -ww -z")
        #expect(run.status == 0 && run.errorData.isEmpty && run.outputData.isEmpty, "\(run.error)")
    }

    @Test(.enabled(if: isInstalled("groff"), "there is no groff: the page is not rendered"))
    func `no word of the page is hyphenated`() throws {
        let run = try Tool().shell("\"$TOOL\" man-page | groff -man -Tutf8 -P-c -P-b -P-u -rLL=60n")
        #expect(run.status == 0 && run.lines.count > 500)
        #expect(!run.lines.contains { $0.hasSuffix("\u{2010}") })
    }
}
