// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheCommand

@Suite(.takesTurns) struct ColourTests {
    @Test(
        arguments: [
            (true, nil, "xterm", true), (true, "", "xterm", true), (true, "1", "xterm", false),
            (true, "0", "xterm", false), (true, nil, "dumb", false), (true, nil, nil, false),
            (false, nil, "xterm", false),
        ] as [(Bool, String?, String?, Bool)]
    )
    func `colours are used only on capable terminals, and not if NO_COLOR has a value`(
        isTerminal: Bool,
        refusal: String?,
        terminal: String?,
        isWanted: Bool
    ) {
        let found = Colour.isWanted(
            isTerminal: isTerminal,
            refusal: refusal.map { Array($0.utf8) },
            terminal: terminal.map { Array($0.utf8) }
        )
        #expect(found == isWanted)
    }

    @Test func `a trailing newline is not coloured`() {
        #expect(Colour.red.paint("x") == "\u{1B}[31mx\u{1B}[0m")
        #expect(Colour.bold.paint("a b\n") == "\u{1B}[1ma b\u{1B}[0m\n")
    }
}
