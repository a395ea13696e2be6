// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The names of everything inside a cache directory.
///
/// ```
/// CACHEDIR.TAG  README  format
/// config.json        (limits: DirectoryConfiguration)
/// candidates         (eviction candidates: CandidateList)
/// control            (mapped by every process: ControlLayout)
/// rules              (bulk removals and expirations: RemovalRules)
/// events  events.1   (which process removed what, and why, if enabled: EventLog)
/// outbox  outbox.1   (keys whose changes must be sent to remote stores: OutboxFile)
/// versions           (the clock of versions and the versions of removed keys: VersionFile)
/// objects/ab/ab12…   (64 hexadecimal digits: SHA-256 of the content)
/// entries/cd/cd34…   (64 hexadecimal digits: SHA-256 of the key)
/// locks/object-00…3f  locks/entry-00…3f  locks/janitor  locks/sessions  locks/format
/// locks/requests     (once a remote store was asked for a value)
/// locks/flight-ab12… (64 hexadecimal digits: SHA-256 of the key; while its value is computed)
/// locks/lock-ab12…-0 (SHA-256 of the name, number of the permit; while the permit is held)
/// tmp/               (only if something can't be published from an unnamed file)
/// tmp/part-ab12…     (SHA-256 of a key: a value that is being fetched, or that a killed process was
///                     fetching)
/// ```
package enum StoreLayout {
    package static let objects: RelativePath = "objects"
    package static let entries: RelativePath = "entries"
    package static let locks: RelativePath = "locks"
    package static let temporaries: RelativePath = "tmp"
    package static let format: RelativePath = "format"
    static let cacheDirectoryTag: RelativePath = "CACHEDIR.TAG"
    static let readme: RelativePath = "README"
    package static let control: RelativePath = "control"
    /// Limits and defaults that belong to the directory.
    package static let configuration: RelativePath = "config.json"
    /// The eviction candidates, as the last sweep saw them.
    static let candidates: RelativePath = "candidates"
    /// The signature of the candidates file, the same for all versions.
    static let candidatesSignature = "diskcand"
    /// The bulk removals and expirations.
    static let rules: RelativePath = "rules"
    /// The signature of the rules file.
    static let rulesSignature = "rules 1\n"
    static let events: RelativePath = "events"
    static let olderEvents: RelativePath = "events.1"
    /// The keys whose changes must be sent to remote stores.
    static let outbox: RelativePath = "outbox"
    /// The versions of the latest changes of keys without entries, if the directory has used remote stores.
    static let versions: RelativePath = "versions"
    /// The previous outbox, kept until the present one contains all of its records.
    static let olderOutbox: RelativePath = "outbox.1"
    static let formatLock: RelativePath = "format"
    package static let janitorLock: RelativePath = "janitor"
    package static let sessionsLock: RelativePath = "sessions"
    /// A file of byte locks: each locked byte stands for a key that is being requested from a remote store.
    static let requestsLock: RelativePath = "requests"
    /// The prefix of the locks of computations; the key's digest follows.
    static let flightPrefix = "flight-"
    /// The prefix of the permits of named locks; the digest of the name and a number follow.
    static let permitPrefix = "lock-"
    /// The maximum number of permits of a named lock; a waiter has one file open for each permit.
    package static let mostPermits = 256

    /// The version of this layout.
    ///
    /// A directory with a higher version is refused.
    package static let formatVersion = 1
    /// The word after the version in the format file of a directory that stores no records in attributes.
    static let sidecarsWord = "sidecars"

    /// The extended attribute that holds an entry's record.
    ///
    /// The name is short because it shares the free space of the inode with the record: this name leaves 68 bytes on ext4
    /// with inodes of 256 bytes.
    static let recordAttribute: StaticString = "user.dc"

    /// The files in the root.
    static let rootFiles: [RelativePath] = [
        cacheDirectoryTag, readme, format, configuration, control, candidates, rules, events,
        olderEvents, outbox, olderOutbox, versions,
    ]

    /// The names of all permanent lock files.
    static var lockNames: [RelativePath] {
        [janitorLock, sessionsLock]
            + Tree.allCases.flatMap { tree in
                (0..<stripeCount).map { lockName(tree, $0) }
            }
    }

    /// Returns the name of a stripe's lock file: `object-00` to `entry-3f`.
    static func lockName(_ tree: Tree, _ stripe: Int) -> RelativePath {
        let digits = String(stripe, radix: 16)
        return RelativePath("\(tree.rawValue)-\(digits.count < 2 ? "0" : "")\(digits)")
    }

    /// Returns the name of the lock for computing the value of `key`: `flight-ab12…`.
    static func flightName(_ key: Digest) -> RelativePath {
        var name: RelativePath = "flight-"
        name.append(hexadecimal: key.rawWords)
        return name
    }

    /// Returns the name of a permit of the lock with this name: `lock-ab12…-0`.
    static func permitName(_ name: Digest, _ number: Int) -> RelativePath {
        var path: RelativePath = "lock-"
        path.append(hexadecimal: name.rawWords)
        path.append(UInt8(ascii: "-"))
        for digit in String(number).utf8 { path.append(digit) }
        return path
    }

    /// Returns whether a name in `locks/` is that of a flight or a permit, whose lock files exist only while they are
    /// held.
    static func isPassingLock(_ name: String) -> Bool {
        if name.hasPrefix(flightPrefix) {
            return Digest(hexadecimal: name.dropFirst(flightPrefix.utf8.count)) != nil
        }
        guard name.hasPrefix(permitPrefix) else { return false }
        let parts = name.dropFirst(permitPrefix.utf8.count)
            .split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let number = Int(parts[1]), String(number) == parts[1] else { return false }
        return Digest(hexadecimal: parts[0]) != nil && (0..<mostPermits).contains(number)
    }

    /// Returns a name that no other file in `tmp/` has.
    static func freshTemporary(_ prefix: String = "put-") -> RelativePath {
        var generator = SystemRandomNumberGenerator()
        return RelativePath(prefix + String(generator.next(), radix: 36))
    }

    /// Returns whether ``freshTemporary(_:)`` may return this name.
    private static func isFresh(_ name: String, _ prefix: String) -> Bool {
        let suffix = name.dropFirst(prefix.count)
        return name.hasPrefix(prefix) && (1...13).contains(suffix.utf8.count)
            && suffix.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7a).contains($0) }
    }

    /// The prefix of partial downloads; the key's digest follows.
    static let partialPrefix = "part-"

    /// The files of the event log.
    static let eventFiles: [RelativePath] = [events, olderEvents]

    /// Other files in the root that grow with use.
    static let growingFiles: [RelativePath] = [rules, outbox, olderOutbox]

    /// Returns the name of the file in `tmp/` for the partial download of `key`: `part-ab12…`.
    static func partialName(_ key: Digest) -> RelativePath {
        var name: RelativePath = "part-"
        name.append(hexadecimal: key.rawWords)
        return name
    }

    /// Returns the path of a file in `tmp/` whose name is one that the cache gives; nil for any other name.
    static func path(ofTemporary name: String) -> RelativePath? {
        let isPartial =
            name.hasPrefix(partialPrefix)
            && Digest(hexadecimal: name.dropFirst(partialPrefix.utf8.count)) != nil
        let isOwn = isPartial || ["put-", "setup-"].contains { isFresh(name, $0) }
        return isOwn && name.utf8.count <= RelativePath.capacity ? RelativePath(name) : nil
    }

    /// The number of leading bits of a digest that choose a stripe.
    static let stripeBits = 6
    /// The number of stripes of each kind.
    package static let stripeCount = 1 << stripeBits
    /// One element for each stripe.
    ///
    /// This is the only place that repeats the number in ``stripeCount``, because a type can't refer to a constant.
    typealias PerStripe<Element: ~Copyable> = InlineArray<64, Element>

    /// The number of directories below `objects` and `entries`, one for each first byte of a digest.
    package static let shardCount = 256

    /// Returns the stripe that guards all files of a shard; four shards share a stripe.
    static func stripe(ofShard shard: Int) -> Int { shard >> (8 - stripeBits) }

    /// An explanation for users who find the directory.
    static let readmeText = """
        This directory is a cache that several processes share, kept by diskcache.
        Deleting it is safe while nothing uses it; `diskcache clear` empties it at any time.

        """

    /// The signature that makes backup tools skip the directory.
    ///
    /// See https://bford.info/cachedir/
    static let cacheDirectoryTagText = """
        Signature: 8a477f597d28d172789f06886806bc55
        # This directory is a cache made by diskcache: backups can leave it out.

        """

    /// Returns the path of a digest's file inside `objects` or `entries`: `ab/ab12…`.
    package static func path(of digest: Digest) -> RelativePath {
        var path = shard(of: digest)
        path.append(UInt8(ascii: "/"))
        path.append(hexadecimal: digest.rawWords)
        return path
    }

    /// Returns the name of a digest's file in its shard: `ab12…`.
    static func fileName(of digest: Digest) -> RelativePath {
        var name = RelativePath()
        name.append(hexadecimal: digest.rawWords)
        return name
    }

    /// Returns the directory of a digest's file: its first two digits, so that no directory grows too long.
    static func shard(of digest: Digest) -> RelativePath {
        var path = RelativePath()
        path.append(hexadecimal: digest.rawWords, first: 1)
        return path
    }

    /// The names of all shards, `00` to `ff`.
    static let shards: [RelativePath] = (0..<shardCount).map { byte in
        var bytes = InlineArray<32, UInt8>(repeating: 0)
        bytes[0] = UInt8(byte)
        return shard(of: Digest(bytes: bytes))
    }

    /// The names that a partly set up cache directory may contain; a directory with any other name in it is not a cache.
    package static let ownNames: Set<String> = Set(rootFiles.map(\.description)).union(partNames)

    /// The names of the directories among ``ownNames``.
    package static let partNames: Set<String> = ["objects", "entries", "locks", "tmp"]
}

/// One of the two trees of files that are named by digests; the raw value is the prefix of the names of its lock files.
package enum Tree: String, CaseIterable, Sendable {
    case objects = "object"
    case entries = "entry"

    /// The name of the tree's directory in the cache directory.
    var place: RelativePath { self == .entries ? StoreLayout.entries : StoreLayout.objects }

    /// Returns the path of one of the tree's shards, relative to the cache directory.
    func place(ofShard shard: Int) -> String {
        "\(place)/\(StoreLayout.shards[shard])"
    }
}

extension Digest {
    /// The digest's stripe, one of ``StoreLayout/stripeCount``: its leading bits.
    package var stripe: Int { StoreLayout.stripe(ofShard: shard) }

    /// The digest's directory, one of ``StoreLayout/shardCount``: its first byte.
    var shard: Int { Int(byte(0)) }
}
