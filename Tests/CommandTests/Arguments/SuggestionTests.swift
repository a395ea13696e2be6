// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import DiskCacheCommand

@Suite(.takesTurns) struct SuggestionTests {
    static let commands = DiskCacheTool.shown.map { $0.name }

    @Test(arguments: [
        ("gte", "get"), ("pt", "put"), ("stat", "stats"), ("statz", "stats"), ("confg", "config"),
        ("verfiy", "verify"), ("complet", "completions"), ("toch", "touch"), ("clera", "clear"),
        ("GET", "get"), ("Stat", "stats"),
    ])
    func `a missing, extra, wrong or swapped letter is recognized`(word: String, meant: String) {
        #expect(Suggestion.nearest(to: word, among: Self.commands) == meant)
        #expect(Suggestion.words(for: word, among: Self.commands) == " (did you mean \(meant)?)")
    }

    @Test func `command names of other caches yield the equivalent command`() {
        for (word, meant) in [("set", "put"), ("Del", "rm"), ("list", "ls"), ("exists", "has")] {
            #expect(Suggestion.nearest(to: word, among: Self.commands) == meant)
        }
        #expect(Suggestion.nearest(to: "set", among: ["--sort"]) == nil, "no command is meant")
    }

    @Test(arguments: [
        "", "x", "colour", "frobnicate", "statistics of it all", String(repeating: "get", count: 99),
    ])
    func `a word that resembles no command yields no suggestion`(word: String) {
        #expect(Suggestion.nearest(to: word, among: Self.commands) == nil)
        #expect(Suggestion.words(for: word, among: Self.commands).isEmpty)
    }

    @Test func `options are suggested in the same way as commands`() {
        let names = PutCommand.options.map { "--\($0.specification.name)" }
        #expect(Suggestion.nearest(to: "--tll", among: names) == "--ttl")
        #expect(Suggestion.nearest(to: "--content-tpye", among: names) == "--content-type")
        let options = PutCommand.options
        #expect(OptionError.unknown("--tll").words(options) == "unknown option '--tll' (did you mean --ttl?)")
        #expect(OptionError.unknown("-x").words(options) == "unknown option '-x'")
        let number = OptionError.unknown("-3").words(options)
        #expect(number == "unknown option '-3' (put -- before a word that is not an option)")
    }
}
