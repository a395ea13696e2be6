// SPDX-License-Identifier: Apache-2.0

import Platform
import Synchronization

/// A directory's configuration as this process follows it.
///
/// Whoever asks after ``interval`` looks whether the file is another one; nobody is told.
final class FollowedConfiguration: Sendable {
    private struct State {
        var configuration = DirectoryConfiguration()
        /// The file that was read last, nil: there was none.
        var file: Mark?
        /// Why that file counts for nothing.
        var failure: StoreError?
    }

    /// What tells one state of the file from another: it is replaced, or written in place by an editor.
    private struct Mark: Equatable {
        let identity: FileStatus.Identity
        let size: Int64
        let modified: Timestamp
        let changed: Timestamp

        init(_ status: FileStatus) {
            identity = status.identity
            size = status.size
            modified = status.modified
            changed = status.changed
        }
    }

    /// Time between looks, in ms: half of the second in which all processes follow, as the other half may pass until
    /// somebody asks.
    private static let interval: UInt64 = 500

    /// Longer files are no configuration.
    private static let longest = 64 * 1024

    private let directory: StoreDirectory
    private let state = Locked(State())
    /// By ``Timestamp/monotonicMilliseconds``.
    private let nextLook = Atomic<UInt64>(0)

    init(of directory: StoreDirectory) {
        self.directory = directory
    }

    /// As it was when last looked at.
    var present: DirectoryConfiguration { state.withLock { $0.configuration } }

    /// Why the file that is there can't be used; the one before it counts on.
    var failure: StoreError? { state.withLock { $0.failure } }

    /// Whether it is time to look again; true for one caller.
    ///
    /// No system call.
    func isDue() -> Bool {
        let now = Timestamp.monotonicMilliseconds
        let due = nextLook.load(ordering: .relaxed)
        guard now >= due else { return false }
        return nextLook.compareExchange(expected: due, desired: now + Self.interval, ordering: .relaxed)
            .exchanged
    }

    /// Looks at the file; true where the configuration is another one.
    ///
    /// One system call, and three more where the file is another one. What can't be read, or parsed, leaves the
    /// configuration as it was: a slip of the editor must neither stop a cache nor free it from its limits.
    /// ``failure`` tells.
    @discardableResult
    func look() -> Bool {
        nextLook.store(Timestamp.monotonicMilliseconds + Self.interval, ordering: .relaxed)
        // Of before the reading: whoever writes the file meanwhile makes it another one.
        var mark: Mark?
        do throws(StoreError) {
            mark = try status().map { Mark($0) }
            let present = mark
            let isKnown = state.withLock { $0.file == present && ($0.failure == nil || present != nil) }
            if isKnown { return false }
            let configuration = try read()
            return state.withLock { state in
                defer { state = State(configuration: configuration, file: present) }
                return state.configuration != configuration
            }
        } catch {
            // What was read stays as bad as it is; anything else, a want of descriptors for one, passes.
            let known = error.code == .badConfiguration ? mark : nil
            state.withLock { state in
                state.file = known
                state.failure = error
            }
            return false
        }
    }

    private func status() throws(StoreError) -> FileStatus? {
        try describing("look at", path) { () throws(Errno) in
            try ifExists { () throws(Errno) in try directory.root.status(of: StoreLayout.configuration) }
        }
    }

    /// Whether the configuration of the cache at `path` says that its file system is local; false where it can't be read,
    /// which whoever needs its limits is told of.
    static func assumesLocal(_ root: borrowing Directory, _ path: String) -> Bool {
        do throws(StoreError) {
            return try read(in: root, "\(path)/\(StoreLayout.configuration)").assumesLocal
        } catch {
            return false
        }
    }

    /// What the file says; no limits where there is none.
    func read() throws(StoreError) -> DirectoryConfiguration { try Self.read(in: directory.root, path) }

    private static func read(
        in root: borrowing Directory,
        _ path: String
    ) throws(StoreError) -> DirectoryConfiguration {
        let bytes: [UInt8]??
        do throws(Errno) {
            bytes = try ifExists { () throws(Errno) in
                try root.open(StoreLayout.configuration, .readOnly).readToEnd(limit: Self.longest)
            }
        } catch {
            if let words = error.wordsOfNoFile { throw unreadable(path, words) }
            throw StoreError(errno: error, "read", path: path)
        }
        guard let bytes else { return DirectoryConfiguration() }
        guard let bytes else { throw unreadable(path, "it is too long") }
        do throws(DirectoryConfiguration.Problem) {
            return try DirectoryConfiguration(json: bytes)
        } catch {
            throw unreadable(path, error.words)
        }
    }

    private static func unreadable(_ path: String, _ words: String) -> StoreError {
        StoreError(.badConfiguration, "read", path: path, detail: words)
    }

    /// Puts another file in its place, in one step.
    func write(_ configuration: DirectoryConfiguration) throws(StoreError) {
        let json = try encode(configuration)
        try describing("write", path) { () throws(Errno) in
            let file = try TemporaryFile(in: directory, mode: FileMode.file)
            try file.file.writeAll(json.span)
            try file.file.synchronize()
            try file.rename(to: directory.root, StoreLayout.configuration)
        }
    }

    private func encode(_ configuration: DirectoryConfiguration) throws(StoreError) -> [UInt8] {
        do throws(DirectoryConfiguration.Problem) {
            return try configuration.json()
        } catch {
            throw StoreError(.badConfiguration, "write", path: path, detail: error.words)
        }
    }

    private var path: String { "\(directory.path)/\(StoreLayout.configuration)" }
}

extension Store {
    /// The limits and defaults that belong to the directory, as this process saw them last.
    package var configuration: DirectoryConfiguration { followed.present }

    /// Why the configuration that is there now can't be used; nil: it can.
    package var configurationFailure: StoreError? { followed.failure }

    /// Looks whether there is another configuration: to be called about once a second.
    ///
    /// One system call where there is none.
    package func followConfiguration() {
        FileSizeLimit.follow()
        followed.look()
        renewGranularity()
    }

    /// Changes the configuration, for all processes; they follow within a second.
    ///
    /// `change` is called again where the disk was full.
    ///
    /// - Throws: ``StoreError/Code/badConfiguration`` where the one that is there can't be read: it is left as it is.
    package func configure(
        _ change: (inout DirectoryConfiguration) throws(StoreError) -> Void
    ) throws(StoreError) {
        // A limit may be what the full disk lacks.
        try room.makingSpace(forLength: 0, now: .now) { _ throws(StoreError) in try configureOnce(change) }
        followConfiguration()
    }

    private func configureOnce(
        _ change: (inout DirectoryConfiguration) throws(StoreError) -> Void
    ) throws(StoreError) {
        // Who changes it at the same time must not undo this.
        let lock = try describing("lock", "\(directory.path)/locks/format") { () throws(Errno) in
            try LockFile.acquire(
                StoreLayout.formatLock,
                in: directory.locks,
                patience: Stripes.writerPatience
            )
        }
        guard let lock else {
            throw StoreError(.busy, "change the limits of", path: directory.path, errno: .timedOut)
        }
        var configuration = try followed.read()
        let before = configuration
        try change(&configuration)
        if configuration != before { try followed.write(configuration) }
        lock.release()
    }
}
