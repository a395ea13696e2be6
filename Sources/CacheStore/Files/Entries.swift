// SPDX-License-Identifier: Apache-2.0

package import Platform

/// An entry as it was found on disk, and as the rules in force have it.
///
/// An object, so that handing it on costs one count of references.
package final class StoredEntry: Sendable {
    /// The record's bytes, by which a later look can tell whether it is still the same.
    package let bytes: [UInt8]
    /// nil where the bytes are no record, or ``isUndecided``.
    package let record: Record?
    /// Whether the bytes are a record, and the rules by which it would have to be judged are gone or damaged: to readers it
    /// is a miss.
    let isUndecided: Bool
    /// When the last of the rules was made that have changed the record.
    ///
    /// Whoever has seen that rule in force is later than this, though the call may have asked for the time before.
    let judged: Timestamp

    init(of key: Digest, _ bytes: [UInt8]) {
        self.bytes = bytes
        record = RecordCodec.decode(bytes, for: key)
        isUndecided = false
        judged = .distantPast
    }

    /// The same bytes, with what rules have left of the record.
    fileprivate init(_ stored: StoredEntry, _ record: Record?, judged: Timestamp = .distantPast) {
        bytes = stored.bytes
        self.record = record
        isUndecided = record == nil
        self.judged = judged
    }

    /// Whether rules in force are meant for the value.
    var isChangedByRules: Bool { judged > .distantPast }

    /// The freshness of the value at `now`, as a get sees it; nil if there is no record.
    ///
    /// A rule that has expired the value holds for all that go by it, though the clock may have been set back since.
    package func freshness(at now: Timestamp, accessed: Timestamp) -> Freshness? {
        record?.freshness(at: max(now, judged), accessed: accessed)
    }

    /// Whether two looks have found the same: the same bytes, and rules that leave the same of them.
    static func areSame(_ one: StoredEntry?, _ other: StoredEntry?) -> Bool {
        one?.bytes == other?.bytes && one?.record?.core == other?.record?.core
    }
}

/// The entries: one small file a key, named by the digest of the key, whose record says where the value is.
package final class Entries: Sendable {
    let directory: StoreDirectory
    let control: Control
    let stripes: Stripes
    let form: RecordForm
    let isDurable: Bool
    let novelty = Novelty()

    init(in control: Control, form: RecordForm, isDurable: Bool) {
        self.control = control
        directory = control.directory
        stripes = Stripes(of: .entries, in: control)
        self.form = directory.capabilities.attributes == .writable ? form : .sidecar
        self.isDurable = isDurable
    }

    // MARK: Reading

    /// The entry of `key`, nil where there is none, or a rule has removed it.
    ///
    /// One call for a record in an attribute and for a missing entry, seven for a sidecar (five where
    /// the file system has no attributes); five more for the first after each change of the rules.
    package func read(_ key: Digest) throws(CacheError) -> StoredEntry? {
        let rules = try control.rulesInForce()
        guard let bytes = try recordBytes(key) else { return nil }
        let stored = StoredEntry(of: key, bytes)
        if case .nothing = rules { return stored }
        return try judged(stored, key, rules)
    }

    /// The bytes of the record, whatever the rules say; nil where there is no entry.
    func recordBytes(_ key: Digest) throws(CacheError) -> [UInt8]? {
        do throws(Errno) {
            return try bytes(at: StoreLayout.path(of: key))
        } catch {
            if error.tellsOfNothing { return nil }
            throw CacheError(errno: error, "read an entry", path: directory.path(of: key, .entries))
        }
    }

    /// What the rules leave of an entry that was read after they were asked for; nil: nothing.
    private func judged(
        _ stored: StoredEntry,
        _ key: Digest,
        _ rules: RulesInForce
    ) throws(CacheError) -> StoredEntry? {
        guard let record = stored.record else { return stored }
        guard case .these(let rules, let number) = rules else {
            if case .unknown = rules { return StoredEntry(stored, nil) }
            return stored
        }
        let meant = rules.meant(for: record, upTo: number)
        if meant.isEmpty { return stored }
        let left = try record.applying(meant) { () throws(CacheError) in
            try directory.status(of: key, .entries)?.accessed ?? .distantPast
        }
        return left.map { StoredEntry(stored, $0, judged: meant.map(\.moment).max() ?? .distantPast) }
    }

    /// The record in the attribute of the file, else in its contents.
    ///
    /// An attribute that has been set on it meanwhile is the later record: the file that was opened was the
    /// entry then, so either is a value of this moment.
    private func bytes(at path: RelativePath) throws(Errno) -> [UInt8] {
        let name = StoreLayout.recordAttribute
        let hasAttributes = directory.capabilities.attributes != .absent
        do throws(Errno) {
            if hasAttributes, let value = try directory.entries.attribute(name, of: path) { return value }
            let file = try openUnnoticed(path)
            if hasAttributes, let later = try file.attribute(name) { return later }
            return try file.readToEnd(limit: RecordCodec.maximumSize) ?? []
        } catch {
            // Something else is in the entry's place, and has no record. Any other error, also one of the attribute's,
            // does not tell whether there is a record.
            if error.meaning == .notAFile { return [] }
            throw error
        }
    }

    /// Opens an entry without marking it as accessed: the file's access time is ours to set, and without
    /// this a mere listing would make everything look used and prolong sliding expirations.
    private func openUnnoticed(_ path: RelativePath) throws(Errno) -> FileDescriptor {
        do throws(Errno) {
            return try directory.entries.open(path, [.readOnly, .noAccessTime])
        } catch {
            // Only the owner may ask for that, open(2).
            guard error == .notPermitted else { throw error }
            return try directory.entries.open(path, .readOnly)
        }
    }

    // MARK: Writing

    /// Runs `publish`, which changes the entry of `key`, as a writer in its word of the generation table.
    ///
    /// The caller holds the entry's stripe. No system call where the control file is mapped.
    ///
    /// - Parameter isRemoval: no entry is there afterwards.
    func writing<Result>(
        _ key: Digest,
        isRemoval: Bool = false,
        _ publish: () throws(CacheError) -> Result
    ) throws(CacheError) -> (result: Result, generation: Generation?) {
        guard let writing = try control.beginWriting(key, publishes: !isRemoval) else {
            return (try publish(), nil)
        }
        do throws(CacheError) {
            let result = try publish()
            return (result, control.endWriting(writing))
        } catch {
            // What failed may have been published all the same.
            control.endWriting(writing)
            throw error
        }
    }

    /// Notes an access; false where there is no such entry.
    ///
    /// Three calls. A process that may write the file but doesn't own it can only set it to the kernel's present.
    func setAccessTime(of key: Digest, to time: Timestamp) throws(CacheError) -> Bool {
        let path = StoreLayout.path(of: key)
        return try describing("note an access", directory.path(of: key, .entries)) { () throws(Errno) in
            try ifFiled { () throws(Errno) -> Void in
                do throws(Errno) {
                    try directory.entries.setAccessTime(of: path, to: time)
                } catch {
                    guard error == .notPermitted else { throw error }
                    try directory.entries.touch(path)
                }
            } != nil
        }
    }
}
