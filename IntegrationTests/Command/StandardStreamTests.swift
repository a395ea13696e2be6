// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Tests of `diskcache` with the standard streams that other programs pass to it.
@Suite(.takesTurns) struct StandardStreamTests {
    let tool: Tool

    init() throws {
        tool = try Tool()
    }

    /// A shell function that runs a command with non-blocking standard input and output, as node, ssh and continuous
    /// integration do.
    private static let nonBlocking = """
        nonblocking() {
            perl -MFcntl -e 'for my $number (0, 1) {
                open(my $file, $number ? ">&=" : "<&=", $number) or die;
                fcntl($file, F_SETFL, fcntl($file, F_GETFL, 0) | O_NONBLOCK) or die;
            } exec @ARGV' "$@"
        }

        """

    @Test func `values pass completely through non-blocking pipes`() throws {
        // 50 times the capacity of a pipe, so that both sides have to wait.
        let value = Data((0..<(1 << 19)).map { "\($0)\n" }.joined().utf8)
        let run = try tool.shell(
            Self.nonBlocking + """
                set -o pipefail
                cat | nonblocking "$TOOL" put key && "$TOOL" get key | cmp - "$DISKCACHE_DIR.value" &&
                    nonblocking "$TOOL" get key </dev/null | cat
                """,
            input: try {
                try value.write(to: URL(fileURLWithPath: tool.directory + ".value"))
                return value
            }()
        )
        #expect(run.status == 0 && run.error.isEmpty, "\(run.error)")
        // Compared outside of the macro, which would list all differences of this much data.
        let isWhole = run.outputData == value
        #expect(isWhole)
    }

    @Test func `long lists pass completely through non-blocking pipes`() throws {
        let cache = try tool.cache()
        let name = String(repeating: "name", count: 200)
        for number in 0..<200 { try cache.put("value", forKey: "\(name) \(number)") }
        let run = try tool.shell(
            Self.nonBlocking + Self.lateReader + #"nonblocking "$TOOL" ls </dev/null | late"#
        )
        #expect(run.error.isEmpty, "\(run.error)")
        #expect(run.lines.count == 200)
    }

    @Test func `serve waits for requests on a non-blocking pipe`() throws {
        // The second request comes after the first answer: in between the pipe is empty.
        let run = try tool.shell(
            Self.nonBlocking + #"""
                answers="$DISKCACHE_DIR.answers"; : > "$answers"
                {
                    printf '{"op":"put","key":"key","length":5}\nvalue'
                    until [ -s "$answers" ]; do sleep 0.01; done
                    printf '{"op":"get","key":"key"}\n'
                } | nonblocking "$TOOL" serve | cat > "$answers"
                cat "$answers"
                """#
        )
        #expect(run.error.isEmpty, "\(run.error)")
        #expect(run.output.hasSuffix("value"), "\(run.output)")
    }

    /// A shell function that copies its input once the pipe is full (FIONREAD), so that the writer has to wait.
    private static let lateReader = """
        late() {
            perl -e 'my $count = pack("i", 0);
                do { select(undef, undef, undef, 0.01); ioctl(STDIN, 0x541B, $count) or die }
                until unpack("i", $count) >= 61440'
            cat
        }

        """

    @Test func `answers of serve pass completely through a non-blocking pipe`() throws {
        let value = Data(repeating: UInt8(ascii: "v"), count: 1 << 20)
        try tool.cache().put(value, forKey: "key")
        let run = try tool.shell(
            Self.nonBlocking + Self.lateReader + #"""
                printf '{"op":"get","key":"key"}\n' | nonblocking "$TOOL" serve | late
                """#
        )
        #expect(run.error.isEmpty, "\(run.error)")
        let isWhole = run.outputData.suffix(value.count) == value
        #expect(isWhole && run.outputData.count > value.count)
    }

    @Test func `a fetched body passes completely through a non-blocking pipe`() throws {
        let value = Data(repeating: UInt8(ascii: "v"), count: 1 << 20)
        let server = try WebServer { _ in WebServer.Answer(200, ["Cache-Control: max-age=60"], value) }
        defer { server.stop() }
        let run = try tool.shell(
            Self.nonBlocking + Self.lateReader
                + "nonblocking \"$TOOL\" fetch '\(server.url("/"))' </dev/null | late"
        )
        #expect(run.error.isEmpty, "\(run.error)")
        let isWhole = run.outputData == value
        #expect(isWhole)
    }
}
