// SPDX-License-Identifier: Apache-2.0

import DiskCache
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskCacheCommand
@testable import Platform

/// The policy of `doctor`, applied to made-up facts.
@Suite(.takesTurns) struct ChecksTests {
    /// Returns the findings for a healthy directory to whose facts `change` was applied.
    static func findings(_ change: (inout DirectoryInspection) -> Void = { _ in }) -> [Finding] {
        var facts = DirectoryInspection(
            owner: 1000,
            user: 1000,
            permissions: 0o700,
            fileSystem: FileSystemKind(magic: 0xEF53),
            space: space(),
            clockSkew: .milliseconds(-10)
        )
        facts.configuration.limits.minimumFree = .percent(0)
        change(&facts)
        return facts.findings
    }

    static func space(
        bytes: Int64 = 50,
        inodes: UInt64 = 50,
        totalInodes: UInt64 = 100,
        isReadOnly: Bool = false,
        accessTimes: AccessTimes = .seldom
    ) -> FileSystemSpace {
        FileSystemSpace(
            totalBytes: 100,
            availableBytes: bytes,
            freeBytes: bytes,
            totalInodes: totalInodes,
            availableInodes: inodes,
            isReadOnly: isReadOnly,
            accessTimes: accessTimes
        )
    }

    /// Returns the subjects and levels of the findings that are not fine.
    static func troubles(_ change: (inout DirectoryInspection) -> Void) -> [String: Finding.Level] {
        let troubles = findings(change).filter { $0.level != .fine }
        return Dictionary(uniqueKeysWithValues: troubles.map { ($0.subject, $0.level) })
    }

    @Test func `a private directory on a local disk is fine`() {
        #expect(Self.findings().allSatisfy { $0.level == .fine && $0.advice == nil })
    }

    @Test func `every finding that is not fine has advice`() {
        let findings = Self.findings {
            $0.isWritable = false
            $0.hasAttributes = false
            $0.fileSystem = FileSystemKind(magic: 0x6969)
            $0.control = .missing
            $0.owner = 0
            $0.permissions = 0o755
            $0.space = Self.space(bytes: 1, inodes: 1)
            $0.clockSkew = .seconds(60)
            $0.replacedControlVersion = 3
            $0.hasAttributeCalls = false
            $0.hasHashInstructions = false
            $0.age = .seconds(86401)
            $0.configuration = DirectoryConfiguration()
            $0.activity = activity(evictions: 1, young: 1, misses: 256, ghosts: 256)
        }
        #expect(findings.filter { $0.level != .fine }.count == 14)
        #expect(findings.allSatisfy { ($0.level == .fine) == ($0.advice == nil) })
    }

    @Test func `many entries without records are a risk, and a few unfinished ones are not`() {
        #expect(
            Self.troubles {
                $0.sampledEntries = 100
                $0.entriesWithoutRecord = 30
            } == ["keys": .risk]
        )
        for (without, sampled) in [(1, 1), (25, 100), (0, 0)] {
            let troubles = Self.troubles {
                $0.sampledEntries = sampled
                $0.entriesWithoutRecord = without
            }
            #expect(troubles.isEmpty)
        }
    }

    @Test func `missing attributes are a fallback`() {
        #expect(Self.troubles { $0.hasAttributes = false } == ["metadata": .fallback])
    }

    @Test func `missing unnamed files are a fallback`() {
        #expect(Self.troubles { $0.hasUnnamedFiles = false } == ["new files": .fallback])
    }

    @Test(arguments: [
        0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x0102_1997, 0x6573_5546, 0x00C3_6400, 0x5346_414F,
    ])
    func `a network file system is a risk`(magic: Int64) {
        #expect(Self.troubles { $0.fileSystem = FileSystemKind(magic: magic) } == ["file system": .risk])
    }

    @Test func `a file system in memory is a fallback`() {
        let troubles = Self.troubles { $0.fileSystem = FileSystemKind(magic: 0x0102_1994) }
        #expect(troubles == ["file system": .fallback])
    }

    @Test func `an unknown file system is named by its number, and is a risk unless assumed local`() {
        let findings = Self.findings { $0.fileSystem = FileSystemKind(magic: 0xABC) }
        let found = findings.first { $0.subject == "file system" }
        #expect(found?.level == .risk && found?.state.hasPrefix("type 0xabc: ") == true)
        #expect(found?.advice?.contains("assume-local") == true)
        let troubles = Self.troubles {
            $0.fileSystem = FileSystemKind(magic: 0xABC)
            $0.isAssumedLocal = true
        }
        #expect(troubles.isEmpty)
    }

    @Test(arguments: [(true, [:]), (nil, [:]), (false, ["locks": Finding.Level.risk])])
    func `failing locks are a risk`(hasLocks: Bool?, troubles: [String: Finding.Level]) {
        #expect(Self.troubles { $0.hasLocks = hasLocks } == troubles)
    }

    @Test(arguments: [ControlCondition.readOnly, .missing, .impossible])
    func `a control file that is not shared is a fallback`(control: ControlCondition) {
        let troubles = Self.troubles {
            $0.control = control
            $0.hasControlFile = control != .missing
        }
        #expect(troubles == ["control file": .fallback])
    }

    @Test func `a control file that can't be opened is a risk`() {
        #expect(Self.troubles { $0.control = .missing } == ["control file": .risk])
    }

    @Test func `another owner is a risk`() {
        #expect(Self.troubles { $0.owner = 0 } == ["owner": .risk])
    }

    @Test(arguments: [UInt32(0o701), 0o750, 0o755, 0o777])
    func `permissions for others are a risk`(permissions: UInt32) {
        #expect(Self.troubles { $0.permissions = permissions } == ["permissions": .risk])
    }

    @Test func `a directory that can't be written is a risk`() {
        #expect(Self.troubles { $0.isWritable = false } == ["directory": .risk])
    }

    @Test func `a file system mounted read-only is a risk`() {
        let troubles = Self.troubles {
            $0.isWritable = false
            $0.space = Self.space(isReadOnly: true)
        }
        #expect(troubles == ["directory": .risk])
    }

    @Test func `a directory that was replaced is a risk`() {
        #expect(Self.troubles { $0.isCurrent = false } == ["directory": .risk])
    }

    @Test(arguments: [(Int64(5), false), (4, true), (0, true)])
    func `less than 5 percent of free space is a risk`(percent: Int64, isRisk: Bool) {
        let troubles = Self.troubles { $0.space = Self.space(bytes: percent) }
        #expect(troubles == (isRisk ? ["space": .risk] : [:]))
    }

    @Test(arguments: [(UInt64(5), false), (4, true)])
    func `less than 5 percent of free inodes is a risk`(percent: UInt64, isRisk: Bool) {
        let troubles = Self.troubles { $0.space = Self.space(inodes: percent) }
        #expect(troubles == (isRisk ? ["inodes": .risk] : [:]))
    }

    @Test func `a file system without an inode count is fine`() {
        #expect(Self.troubles { $0.space = Self.space(inodes: 0, totalInodes: 0) }.isEmpty)
    }

    @Test(arguments: [
        (Duration.seconds(2), false), (.milliseconds(2001), true), (.seconds(-2), false),
        (.milliseconds(-2001), true),
    ])
    func `clocks more than 2 seconds apart are a risk`(skew: Duration, isRisk: Bool) {
        #expect(Self.troubles { $0.clockSkew = skew } == (isRisk ? ["clock": .risk] : [:]))
    }

    @Test func `a clock that can't be compared is not a risk`() {
        #expect(Self.troubles { $0.clockSkew = nil }.isEmpty)
    }

    @Test func `checks that need writing are not reported if the directory is not writable`() {
        let findings = Self.findings {
            $0.isWritable = false
            $0.hasAttributes = false
            $0.hasUnnamedFiles = false
            $0.space = Self.space(isReadOnly: true)
        }
        let metadata = findings.first { $0.subject == "metadata" }
        #expect(metadata?.level == .fine && metadata?.state == "not checked: the directory can't be written")
        #expect(findings.filter { $0.level != .fine }.map(\.subject) == ["directory"])
    }
}
