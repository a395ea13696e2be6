// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

@testable import DiskCacheCommand

@Suite(.takesTurns) struct QuantityTests {
    @Test(arguments: [
        ("0", 0), ("512", 512), ("512B", 512), ("64K", 65536), ("64k", 65536), ("64KB", 65536),
        ("64KiB", 65536),
        ("1.5M", 1_572_864), ("2G", 2_147_483_648), ("1T", 1_099_511_627_776), ("1P", 1_125_899_906_842_624),
    ])
    func `sizes are powers of 1024`(text: String, bytes: Int64) throws {
        #expect(try Quantity.size(text).bytes == bytes)
    }

    @Test func `a time in the future is shown as such, not as a negative time ago`() {
        let now = Date(timeIntervalSince1970: 1_700_000_000)
        #expect(Quantity.ago(now.addingTimeInterval(-90), now) == "1m 30s ago")
        #expect(Quantity.ago(now.addingTimeInterval(0.5), now) == "0s ago")
        #expect(Quantity.ago(now.addingTimeInterval(7200), now) == "in 2h")
    }

    @Test(arguments: ["", "K", "-1", "1X", "1 K", "1KK", "1e3", "nan", "inf", "0x10", "1.2.3", "8192P", "٣"])
    func `an invalid size is refused as a usage error`(text: String) {
        #expect { try Quantity.size(text) } throws: { ($0 as? Failure)?.status == .usage }
    }

    @Test func `a size that overflows is refused`() throws {
        #expect(throws: Failure.self) { try Quantity.size(String(repeating: "9", count: 500)) }
        // Sizes that config.json can't hold are refused.
        #expect(try Quantity.size("8191T").bytes == 8191 << 40)
        #expect(throws: Failure.self) { try Quantity.size("8P") }
    }

    @Test(arguments: [
        ("0", Duration.zero), ("90", .seconds(90)), ("90s", .seconds(90)), ("500ms", .milliseconds(500)),
        ("15m", .seconds(900)), ("1.5h", .seconds(5400)), ("7d", .seconds(604_800)),
        ("2w", .seconds(1_209_600)), ("1h30m", .seconds(5400)), ("1d12h", .seconds(129_600)),
        ("1m500ms", .milliseconds(60_500)), ("1w2d3h4m5s6ms", .milliseconds(788_645_006)),
    ])
    func `time spans have units`(text: String, span: Duration) throws {
        #expect(try Quantity.duration(text) == span)
    }

    @Test(arguments: [
        "", "d", "-5", "-5d", "5 d", "5y", "soon", "1e9", "99999999999999999999d", "inf", "nan", "1h30",
        "30m1h", "1h1h", "1h m", "1h-5m", "1h30m ", "104000d500d", "1h\u{301}",
    ])
    func `an invalid time span is refused as a usage error`(text: String) {
        #expect { try Quantity.duration(text) } throws: { ($0 as? Failure)?.status == .usage }
    }

    @Test func `a digest is parsed as sha256sum prints it, in lower or upper case`() throws {
        let digest = Digest(of: Data("hello".utf8))
        #expect(try Quantity.digest("\(digest)") == digest)
        #expect(try Quantity.digest("\(digest)".uppercased()) == digest)
        #expect(try Quantity.digest("sha256:\(digest)") == Quantity.digest("\(digest)"))
        for text in ["", "12", "\(digest)0", String(repeating: "g", count: 64)] {
            #expect { try Quantity.digest(text) } throws: { ($0 as? Failure)?.status == .usage }
        }
    }

    @Test(arguments: ["", "-1", "1.5", "many", "99999999999999999999"])
    func `an invalid count is refused as a usage error`(text: String) {
        #expect { try Quantity.count(text) } throws: { ($0 as? Failure)?.status == .usage }
    }

    @Test(arguments: [
        (Duration.zero, "0s"), (.milliseconds(999), "0s"), (.seconds(59), "59s"), (.seconds(60), "1m"),
        (.seconds(61), "1m 1s"), (.seconds(3600), "1h"), (.seconds(3661), "1h 1m"),
        (.seconds(90000), "1d 1h"),
        (.seconds(86401), "1d"), (.seconds(-61), "-1m 1s"),
    ])
    func `time spans are written in their two leading units`(span: Duration, text: String) {
        #expect(Quantity.text(span) == text)
    }

    @Test(arguments: [
        (Int64(0), "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (1_048_575, "1.0 MiB"),
        (1_073_741_824, "1.0 GiB"), (.max, "8192.0 PiB"),
    ])
    func `sizes are written with one decimal`(bytes: Int64, text: String) {
        #expect(Quantity.text(bytes: bytes) == text)
    }

    @Test func `a count of one is singular`() {
        #expect(Quantity.count(1, "key") == "1 key")
        #expect(Quantity.count(0, "key") == "0 keys")
    }
}

@Suite(.takesTurns) struct ExpirationOptionsTests {
    @Test(arguments: ["90000d", "soon"])
    func `the error for an invalid lifetime lists the alternatives`(text: String) {
        #expect { try ExpirationOptions.lifetime(text) } throws: {
            ($0 as? Failure)?.message.hasSuffix("or never") ?? false
        }
    }

    @Test func `the latest accepted time is in the year 2262`() throws {
        #expect(throws: Never.self) { try ExpirationOptions.moment("2262-04-11") }
        #expect { try ExpirationOptions.moment("2262-04-12") } throws: {
            ($0 as? Failure)?.message.contains("the latest is 2262-04-11") ?? false
        }
    }

    @Test(arguments: [
        ("2030-01-31", 1_896_048_000.0), ("2030-01-31T18:00:00Z", 1_896_112_800),
        ("2030-01-31T18:00:00.250Z", 1_896_112_800.25), ("2030-01-31T18:00:00+02:00", 1_896_105_600),
        ("2030-01-31T18:00:00-00:30", 1_896_114_600),
    ])
    func `times are ISO 8601`(text: String, seconds: Double) throws {
        #expect(try ExpirationOptions.moment(text).timeIntervalSince1970 == seconds)
    }

    @Test(arguments: [
        "", "tomorrow", "2030", "2030-02-31", "2030-13-01", "2030-01-31T25:00:00Z", "2030-01-31T18:00:00",
        "2030-01-31T18:00:00Zulu", "2030-01-31 18:00:00Z", "20300131T180000Z", "12030-01-31T18:00:00Z",
        "2030-01-31T18:00:00+2", "2030-01-31T18:00:00+02-00", "2030-01-31T18:00:00+٠٢:00",
        "2030-01-31T18:00:00+02:000", "2030-01-31T18:00:00+02:00\u{301}",
    ])
    func `an invalid time is refused as a usage error`(text: String) {
        #expect { try ExpirationOptions.moment(text) } throws: { ($0 as? Failure)?.status == .usage }
    }

    @Test(
        arguments: [
            (-90.0, "1m 30s ago"), (0, "0s ago"), (0.5, "0s ago"), (90, "in 1m 30s"),
            (86400 * 400, "in 400d"),
        ] as [(Double, String)]
    )
    func `a time is shown relative to now, past or future`(seconds: Double, text: String) {
        let now = Date(timeIntervalSince1970: 1_700_000_000)
        #expect(Quantity.ago(now.addingTimeInterval(seconds), now) == text)
    }
}
