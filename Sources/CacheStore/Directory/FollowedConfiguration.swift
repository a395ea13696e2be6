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
        var failure: CacheError?
        /// Whether this process has read any, or that there is none.
        var isKnown = false
    }

    /// What tells one state of the file from another: it is replaced, or written in place by an editor.
    private struct Mark: Equatable {
        let identity: FileStatus.Identity
        let size: Int64
        let modified: Timestamp
        let changed: Timestamp
    }

    /// Time between looks, in ms: half of the second in which all processes follow, as the other half may pass until
    /// somebody asks.
    private static let interval: UInt64 = 500

    private let directory: StoreDirectory
    private let state = Locked(State())
    /// By ``Timestamp/monotonicMilliseconds``.
    private let nextLook = Atomic<UInt64>(0)
    /// ``CacheLimits/maximumAge`` in nanoseconds, for who looks often; the most that there can be for none.
    private let maximumAge = Atomic<Int64>(.max)

    init(of directory: StoreDirectory) {
        self.directory = directory
    }

    /// As it was when last looked at.
    var present: DirectoryConfiguration { state.withLock { $0.configuration } }

    /// The limits for a put.
    ///
    /// No system call where they were read; else one or four.
    ///
    /// - Throws: the read error, if this process has never read the limits: it might exceed them.
    func limitsForPut() throws(CacheError) -> CacheLimits {
        // What kept it from being read may be over.
        if state.withLock({ !$0.isKnown }) { look() }
        return try state.withLock { (state) throws(CacheError) in
            if let failure = state.failure, !state.isKnown { throw failure }
            return state.configuration.limits
        }
    }

    /// How long ago a value may have been stored, in nanoseconds; `Int64.max` where there is no such limit.
    ///
    /// One load.
    var longestAge: Int64 { maximumAge.load(ordering: .relaxed) }

    /// Why the file that is there can't be used; the one before it counts on.
    var failure: CacheError? { state.withLock { $0.failure } }

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

    /// Looks at the file.
    ///
    /// One system call, and three more where the file is another one. What can't be read, or parsed, leaves the
    /// configuration as it was: a slip of the editor must neither stop a cache nor free it from its limits. A process
    /// that has read none before stores nothing (``limitsForPut()``). ``failure`` tells.
    func look() {
        nextLook.store(Timestamp.monotonicMilliseconds + Self.interval, ordering: .relaxed)
        // Of before the reading: whoever writes the file meanwhile makes it another one.
        var mark: Mark?
        do throws(CacheError) {
            let status = try describing("look at", path) { () throws(Errno) in
                try directory.root.presentStatus(of: StoreLayout.configuration)
            }
            mark = status.map {
                Mark(identity: $0.identity, size: $0.size, modified: $0.modified, changed: $0.changed)
            }
            let present = mark
            let isSame = state.withLock { state in
                let isSame = state.file == present && (state.failure == nil || present != nil)
                // A directory without a configuration has no limits.
                if isSame, state.failure == nil { state.isKnown = true }
                return isSame
            }
            if isSame { return }
            let configuration = try DirectoryConfiguration.read(in: directory.root, path)
            state.withLock { state in
                state = State(configuration: configuration, file: present, isKnown: true)
                let age = configuration.limits.maximumAge?.saturatingNanoseconds ?? .max
                maximumAge.store(age, ordering: .relaxed)
            }
        } catch {
            // What was read stays as bad as it is; anything else, a want of descriptors for one, passes.
            let known = error.code == .badConfiguration ? mark : nil
            state.withLock { state in
                state.file = known
                state.failure = error
            }
        }
    }

    // MARK: Changing

    /// Changes the configuration, for all processes; they follow within a second.
    ///
    /// - Throws: ``CacheError/Code/badConfiguration`` where the one that is there can't be read: it is left as it is.
    func update(_ change: (inout DirectoryConfiguration) throws(CacheError) -> Void) throws(CacheError) {
        // A process that changes it at the same time must not undo this.
        guard let lock = try directory.lock(StoreLayout.formatLock, patience: Self.patience) else {
            throw CacheError(.busy, to: "change the limits of", path: directory.path, cause: .timedOut)
        }
        var configuration = try DirectoryConfiguration.read(in: directory.root, path)
        let before = configuration
        try change(&configuration)
        if configuration != before { try write(configuration) }
        lock.release()
    }

    /// How long to wait for another process that changes it.
    private static let patience: Duration = .milliseconds(700)

    /// Puts another file in its place, in one step.
    private func write(_ configuration: DirectoryConfiguration) throws(CacheError) {
        let json = try configuration.json(for: path)
        try describing("write", path) { () throws(Errno) in
            let file = try TemporaryFile(in: directory, mode: FileMode.file)
            try file.file.writeAll(json.span)
            try file.file.synchronize()
            try file.rename(to: directory.root, StoreLayout.configuration)
        }
    }

    private var path: String { "\(directory.path)/\(StoreLayout.configuration)" }
}
