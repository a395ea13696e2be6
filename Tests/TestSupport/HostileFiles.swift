// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform

/// One kind of damage to one file of a cache directory.
public struct HostileCase: Sendable {
    /// The damaged part of the cache, such as "locks/janitor" or "entry".
    public let place: String
    /// The damage, such as "FIFO" or "word 8 = -1".
    public let kind: String
    /// Whether the contents are damaged, as opposed to the type of the file.
    public let isContent: Bool
    private let damage: @Sendable (HostileTemplate) throws -> Void

    /// The place and the kind, for reports.
    public var name: String { "\(place): \(kind)" }

    /// Damages the cache at `directory`, a copy of ``HostileTemplate``.
    public func apply(in directory: String) throws {
        try damage(HostileTemplate(directory: directory))
    }

    /// The case without damage, with which the other cases are compared.
    public static let none = HostileCase(place: "nothing", kind: "as it should be", isContent: true) { _ in }

    init(
        place: String,
        kind: String,
        isContent: Bool,
        damage: @escaping @Sendable (HostileTemplate) throws -> Void
    ) {
        self.place = place
        self.kind = kind
        self.isContent = isContent
        self.damage = damage
    }
}

/// The cache to damage, which has a file in every place where a cache may have one.
///
/// The key "key" has the value "value" and the tag "tag"; the key "other" has the value "other value".
public struct HostileTemplate: Sendable {
    /// The cache directory.
    public let directory: String

    /// Creates a template for the cache in this directory.
    public init(directory: String) {
        self.directory = directory
    }

    /// The keys of the template and their values.
    public static let values = ["key": "value", "other": "other value"]

    /// Adds files that exist only temporarily to a cache that already contains the keys.
    public func complete() throws {
        let janitor = try String(contentsOfFile: path("locks/janitor"), encoding: .utf8)
        precondition(janitor.hasPrefix("sweep 1\n"), "collect first")
        for (name, contents) in [
            "events.1": try String(contentsOfFile: path("events"), encoding: .utf8),
            "candidates": "none", "tmp/put-x": "x",
            Self.flight: "pid 1 since 1700000000.123               \n",
            Self.permit: "pid 1 since 1700000000.123               \n",
        ] where !FileManager.default.fileExists(atPath: path(name)) {
            makeFile(path(name), contents)
        }
        try Data("outside".utf8).write(to: URL(fileURLWithPath: outside))
        try FileManager.default.createDirectory(atPath: outside + ".d", withIntermediateDirectories: true)
        for place in Self.files + Self.directories {
            precondition(access(path(place.path), F_OK) == 0, "the template lacks \(place.path)")
        }
    }

    /// A file outside the directory, which must not be reached through a link.
    public var outside: String { directory + ".outside" }

    func path(_ name: String) -> String { "\(directory)/\(name)" }

    private static func digest(_ text: String) -> String {
        var hash = SHA256()
        hash.update(Array(text.utf8).span)
        let digest = hash.finalize()
        return (0..<32).map { String(format: "%02x", digest[$0]) }.joined()
    }

    private static func shard(_ tree: String, _ text: String) -> String {
        "\(tree)/\(digest(text).prefix(2))"
    }
    static let entry = "\(shard("entries", "key"))/\(digest("key"))"
    private static let object = "\(shard("objects", "value"))/\(digest("value"))"
    static let flight = "locks/flight-\(digest("key"))"
    /// The lock file of a permit of the lock "name".
    static let permit = "locks/lock-\(digest("name"))-0"

    private static func stripe(_ text: String) -> String {
        let byte = Int(digest(text).prefix(2), radix: 16) ?? 0
        return String(format: "%02x", byte >> 2)
    }

    /// Every file that a cache opens.
    static let files: [(name: String, path: String)] =
        [
            "format", "config.json", "control", "candidates", "events", "events.1", "CACHEDIR.TAG", "README",
            "rules", "locks/format", "locks/janitor", "locks/sessions", "tmp/put-x",
        ].map { ($0, $0) } + [
            ("entry", entry), ("object", object), ("locks/flight", flight),
            ("locks/lock", permit),
            ("locks/object", "locks/object-\(stripe("value"))"),
            ("locks/entry", "locks/entry-\(stripe("key"))"),
        ]

    /// Every directory that a cache opens.
    static let directories: [(name: String, path: String)] =
        ["entries", "objects", "locks", "tmp"].map { ($0, $0) } + [
            ("entries/xx", shard("entries", "key")), ("objects/xx", shard("objects", "value")),
        ]
}

extension HostileCase {
    /// All cases: every place with every file type and with extreme contents.
    public static let all: [HostileCase] = {
        var cases: [HostileCase] = []
        for place in HostileTemplate.files {
            cases += HostileKind.allCases.filter { $0 != .file && $0.isPossible }
                .map { HostileCase($0, place, isDirectory: false) }
            cases += HostileContents.ofAnyFile.map { HostileCase($0.kind, place, $0.bytes) }
        }
        for place in HostileTemplate.directories {
            cases += HostileKind.allCases.filter { $0 != .directory && $0 != .fullDirectory && $0.isPossible }
                .map { HostileCase($0, place, isDirectory: true) }
        }
        return cases + HostileContents.ofTexts + HostileContents.ofControl + HostileContents.ofRecord
    }()

    private init(_ kind: HostileKind, _ place: (name: String, path: String), isDirectory: Bool) {
        self.init(place: place.name, kind: kind.rawValue, isContent: false) { template in
            let path = template.path(place.path)
            try FileManager.default.removeItem(atPath: path)
            try kind.make(at: path, outside: template.outside + (isDirectory ? ".d" : ""))
        }
    }

    fileprivate init(
        _ kind: String,
        _ place: (name: String, path: String),
        _ bytes: @escaping @Sendable ([UInt8]) -> [UInt8]?
    ) {
        self.init(place: place.name, kind: kind, isContent: true) { template in
            let path = template.path(place.path)
            let before = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
            chmod(path, 0o600)
            let after = bytes(before)
            // Truncating a mapped file would end the processes that use it with SIGBUS, so the control file is replaced.
            if place.name == "control", let after, after.count < before.count {
                return try Data(after).write(to: URL(fileURLWithPath: path), options: .atomic)
            }
            // The contents are changed in place, as by a failing disk or an editor.
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            guard let after else { return try file.truncate(atOffset: 1 << 40) }
            try file.write(contentsOf: after)
            try file.truncate(atOffset: UInt64(after.count))
            try file.close()
        }
    }
}

/// The types of files that can replace a file or a directory.
enum HostileKind: String, CaseIterable, Sendable {
    case missing, file, directory
    case fullDirectory = "full directory"
    case fifo = "FIFO"
    case socket, device
    case danglingLink = "dangling link"
    case linkToItself = "link to itself"
    case linkOutside = "link outside"

    /// Whether this process can create such a file; only root can create device files.
    var isPossible: Bool { self != .device || geteuid() == 0 }

    func make(at path: String, outside: String) throws {
        switch self {
        case .missing: return
        case .file:
            try check(FileManager.default.createFile(atPath: path, contents: Data("file".utf8)) ? 0 : -1)
        case .directory: try check(mkdir(path, 0o700))
        case .fullDirectory:
            try check(mkdir(path, 0o700))
            makeFile(path + "/file")
        case .fifo: try check(mkfifo(path, 0o600))
        case .socket: try check(mknod(path, S_IFSOCK | 0o600, 0))
        // /dev/zero, which is endless.
        case .device: try check(mknod(path, S_IFCHR | 0o600, 1 << 8 | 5))
        case .danglingLink: try check(symlink("/nowhere", path))
        case .linkToItself: try check(symlink(path, path))
        case .linkOutside: try check(symlink(outside, path))
        }
    }

    private func check(_ result: Int32) throws {
        if result != 0 { throw CocoaError(.fileWriteUnknown) }
    }
}

/// Contents that no process would write, and numbers at the limits of their range.
private enum HostileContents {
    static let extremes: [UInt64] = [0, 1, .max, 1 << 63 - 1, 1 << 63, 1 << 63 + 1, 1 << 62, 1 << 56 + 1]

    /// These numbers as text, and texts that are not 64-bit numbers.
    static let texts =
        extremes.map { String(Int64(bitPattern: $0)) } + ["9223372036854775808", "1e400", "-", ""]

    static let ofAnyFile: [(kind: String, bytes: @Sendable ([UInt8]) -> [UInt8]?)] = [
        ("empty", { _ in [] }), ("half", { Array($0.prefix($0.count / 2)) }),
        ("one byte more", { $0 + [0] }), ("zeros", { $0.map { _ in 0 } }), ("ones", { $0.map { _ in 0xff } }),
        ("random", { SeededGenerator.bytes(max(4096, $0.count), seed: 7) }),
        // A sparse file of 1 TiB.
        ("huge", { _ in nil }),
    ]

    static var ofTexts: [HostileCase] {
        let begin = "sweep 1\nprocess 7\nbegan 1700000000000000000\n"
        let fields = [
            "process %", "began %", "ended %", "busy %", "entries % %", "objects % %", "horizon %",
            "drift % %",
        ]
        var cases = texts.flatMap { number in
            (fields + ["full %\ncost %", "removed size % %\nremoved expired % %"]).map { field in
                let line = field.replacingOccurrences(of: "%", with: number)
                let rest = "ended 1700000000000000000\ncomplete yes\nscope full\n"
                return text(
                    "locks/janitor",
                    field.replacingOccurrences(of: "\n", with: ", "),
                    number,
                    begin + rest + line + "\nend\n"
                )
            } + [
                text("config.json", "maximumSize", number, "{\"maximumSize\": \(number)}"),
                text(
                    "config.json",
                    "maximumAge",
                    number,
                    "{\"maximumAge\": \(number), \"maximumIdleTime\": \(number)}"
                ),
                text("config.json", "maximumEntries", number, "{\"maximumEntries\": \(number)}"),
                text("config.json", "minimumFree", number, "{\"minimumFree\": \"\(number)%\"}"),
                text(
                    "config.json",
                    "maximumValueSize, eventLog",
                    number,
                    "{\"maximumValueSize\": \(number), \"eventLog\": \(number)}"
                ),
                text("format", "version", number, "diskcache \(number)\n"),
                text(
                    "events",
                    "time, process",
                    number,
                    "\n\(number) \(number) size \(String(repeating: "a", count: 64))\n"
                ),
                text(
                    HostileTemplate.flight,
                    "pid, since",
                    number,
                    "pid \(number) since \(number).\(number)\n"
                ),
            ]
        }
        // The stack of the janitor's thread has only 512 KiB.
        for depth in [100, 300, 30_000] {
            let (open, close) = (String(repeating: "[", count: depth), String(repeating: "]", count: depth))
            cases.append(text("config.json", "nested", "\(depth)", "{\"a\": \(open)1\(close)}"))
            let objects = String(repeating: "{\"a\":", count: depth / 5 + 100)
            cases.append(text("config.json", "nested objects", "\(depth)", objects))
        }
        cases += [
            text(
                "config.json",
                "keys",
                "twice",
                #"{"maximumSize": 1e9, "maximumSize": "x", "a": 1, "a": 2}"#
            ),
            text("config.json", "text", "NUL", "{\"maximumAge\u{0}\": 1}\u{0}"),
            HostileCase("not UTF-8", ("config.json", "config.json")) { _ in
                Array("{\"a\": \"".utf8) + [0xff, 0xc0] + Array("\"}".utf8)
            },
        ]
        return cases
    }

    private static func text(_ path: String, _ field: String, _ value: String, _ text: String) -> HostileCase
    {
        let name = path == HostileTemplate.flight ? "locks/flight" : path
        return HostileCase("\(field) = \(value)", (name, path)) { _ in Array(text.utf8) }
    }

    /// Damaged words of the control file, at the offsets in OnDiskFormat.
    static var ofControl: [HostileCase] {
        let words =
            [3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 24].map { ($0, $0) }
            + [(8, 19), (128, 255), (256, 511), (512, 1535), (1536, 263_679), (263_680, 394_751)]
        return words.flatMap { (first, last) in
            extremes.map { value in
                let kind = first == last ? "word \(first)" : "words \(first) to \(last)"
                return HostileCase("\(kind) = \(Int64(bitPattern: value))", ("control", "control")) { bytes in
                    var bytes = bytes
                    let word = withUnsafeBytes(of: value) { Array($0) }
                    for place in first...last { bytes.replaceSubrange(place * 8..<place * 8 + 8, with: word) }
                    return bytes
                }
            }
        }
    }

    /// Impossible records, stored in the extended attribute that OnDiskFormat specifies.
    static var ofRecord: [HostileCase] {
        let most: [UInt8] = [UInt8](repeating: 0xff, count: 9) + [1]
        let length = [UInt8](repeating: 0xff, count: 8) + [0x7e]
        let created: [UInt8] = [0, 0x68, 0xe5, 0xcf, 0x8b, 1]
        let late = [UInt8](repeating: 0xff, count: 6)
        let records: [(String, [UInt8])] = [
            ("empty", []), ("random", SeededGenerator.bytes(70, seed: 8)),
            ("length = most", record(0, length + created)),
            ("length > most", record(0, most + created)),
            ("created = 0", record(0, [5] + [UInt8](repeating: 0, count: 6))),
            ("created = most", record(0, [5] + late)),
            ("all times = most", record(0x01 | 0x02 | 0x08 | 0x10, [5] + late + most + most + most + [0xff])),
            ("expired long ago, stale for ever", record(0x01 | 0x04 | 0x08, [5] + created + [2] + most)),
            ("idle for ever", record(0x01 | 0x02, [5] + created + most + most)),
            ("details longer than it", record(0x20, [5] + created + most)),
            ("key not UTF-8", record(0x40, [5] + created + [0xff, 0xfe, 0])),
            ("as long as it gets", record(0x40, [5] + created + [UInt8](repeating: 0x61, count: 60_000))),
        ]
        return records.map { (kind, bytes) in
            HostileCase(place: "entry", kind: "record " + kind, isContent: true) { template in
                let path = template.path(HostileTemplate.entry)
                // Few file systems support an attribute of 60 KB; on others, the record is stored in the file.
                do {
                    try FileDescriptor(opening: path, .writeOnly).setAttribute("user.dc", to: bytes.span)
                } catch {
                    try FileManager.default.removeItem(atPath: path)
                    try Data(bytes).write(to: URL(fileURLWithPath: path))
                }
            }
        }
    }

    private static func record(_ flags: UInt8, _ rest: [UInt8]) -> [UInt8] {
        [1, flags] + [UInt8](repeating: 0xab, count: 36) + rest
    }
}
