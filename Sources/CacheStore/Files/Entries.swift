// SPDX-License-Identifier: Apache-2.0

package import Platform

/// An entry as found on disk, after the rules in force were applied.
///
/// It is a class, so that passing it on costs one retain.
package final class StoredEntry: Sendable {
    /// The bytes of the record, which a later read compares to detect a change.
    package let bytes: [UInt8]
    /// The record; nil if the bytes are not a valid record, or if ``isUndecided`` is true.
    package let record: Record?
    /// Whether the bytes are a record, but the rules that apply to it are missing or damaged.
    ///
    /// Readers treat such an entry as a miss.
    let isUndecided: Bool
    /// When the latest of the rules that have changed the record was made; `distantPast` if no rule has.
    ///
    /// A caller that sees the rule in force acts after this time, even if it has read the clock before.
    let judged: Timestamp

    init(of key: Digest, _ bytes: [UInt8]) {
        self.bytes = bytes
        record = Record(decoding: bytes, for: key)
        isUndecided = false
        judged = .distantPast
    }

    /// Creates an entry with the same bytes and the record that results from the rules; nil if it is unknown.
    fileprivate init(_ stored: StoredEntry, _ record: Record?, judged: Timestamp = .distantPast) {
        bytes = stored.bytes
        self.record = record
        isUndecided = record == nil
        self.judged = judged
    }

    /// Whether rules in force apply to the value.
    var isChangedByRules: Bool { judged > .distantPast }

    /// Returns the freshness of the value at `now`, as a get sees it; nil if there is no record.
    ///
    /// A value that a rule has expired is expired in all processes that apply the rule, even if the clock has been set
    /// back since.
    package func freshness(at now: Timestamp, accessed: Timestamp) -> Freshness? {
        record?.freshness(at: max(now, judged), accessed: accessed)
    }

    /// Returns whether two reads have found the same bytes, and rules that result in the same record.
    static func areSame(_ one: StoredEntry?, _ other: StoredEntry?) -> Bool {
        one?.bytes == other?.bytes && one?.record?.core == other?.record?.core
    }
}

/// The entries: one small file per key, named by the digest of the key, whose record locates the value.
package final class Entries: Sendable {
    let directory: StoreDirectory
    let control: Control
    let stripes: Stripes
    let form: RecordForm
    let isDurable: Bool
    let newKeyPredictor = NewKeyPredictor()

    init(in control: Control, form: RecordForm, isDurable: Bool) {
        self.control = control
        directory = control.directory
        stripes = Stripes(of: .entries, in: control)
        self.form = directory.capabilities.attributes == .writable ? form : .sidecar
        self.isDurable = isDurable
    }

    // MARK: Reading

    /// Returns the entry of `key`; nil if there is none, or if a rule has removed it.
    ///
    /// One system call for a record in an attribute and for a missing entry, seven for a sidecar (five if the file system
    /// has no attributes); five more for the first read after each change of the rules.
    package func read(_ key: Digest) throws(CacheError) -> StoredEntry? {
        let rules = try control.rulesInForce()
        guard let bytes = try recordBytes(key) else { return nil }
        let stored = StoredEntry(of: key, bytes)
        if case .nothing = rules { return stored }
        return try judged(stored, key, rules)
    }

    /// Returns the bytes of the record, regardless of the rules; nil if there is no entry.
    func recordBytes(_ key: Digest) throws(CacheError) -> [UInt8]? {
        do throws(Errno) {
            return try bytes(at: StoreLayout.path(of: key))
        } catch {
            if error.isMissing { return nil }
            throw CacheError(errno: error, "read an entry", path: directory.path(of: key, .entries))
        }
    }

    /// Applies the rules to an entry that was read after them; returns nil if they remove it.
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

    /// Returns the record in the attribute of the file, or else in its contents.
    ///
    /// If another process has set the attribute since the first check, the attribute contains the later record. The
    /// opened file was the entry when it was opened, so either record is a valid result.
    private func bytes(at path: RelativePath) throws(Errno) -> [UInt8] {
        let name = StoreLayout.recordAttribute
        let hasAttributes = directory.capabilities.attributes != .absent
        do throws(Errno) {
            if hasAttributes, let value = try directory.entries.attribute(name, of: path) { return value }
            let file = try openUnnoticed(path)
            if hasAttributes, let later = try file.attribute(name) { return later }
            return try file.readToEnd(limit: Record.maximumSize) ?? []
        } catch {
            // Another kind of file is in the entry's place and has no record. Any other error, including an error of the
            // attribute, does not show whether there is a record.
            if error.meaning == .notAFile { return [] }
            throw error
        }
    }

    /// Opens an entry without changing its access time.
    ///
    /// The cache sets the access time itself. If reading changed it, a mere listing would mark all entries as used and
    /// prolong sliding expirations.
    private func openUnnoticed(_ path: RelativePath) throws(Errno) -> FileDescriptor {
        do throws(Errno) {
            return try directory.entries.open(path, [.readOnly, .noAccessTime])
        } catch {
            // Only the owner may use this flag, open(2).
            guard error == .notPermitted else { throw error }
            return try directory.entries.open(path, .readOnly)
        }
    }

    // MARK: Writing

    /// Records an access; returns false if there is no such entry.
    ///
    /// Three system calls. A process that may write the file but does not own it can only set the kernel's present time.
    func setAccessTime(of key: Digest, to time: Timestamp) throws(CacheError) -> Bool {
        let path = StoreLayout.path(of: key)
        do throws(Errno) {
            do throws(Errno) {
                try directory.entries.setAccessTime(of: path, to: time)
            } catch {
                guard error == .notPermitted else { throw error }
                try directory.entries.touch(path)
            }
            return true
        } catch {
            if error.showsNoFile { return false }
            throw CacheError(errno: error, "note an access", path: directory.path(of: key, .entries))
        }
    }
}
