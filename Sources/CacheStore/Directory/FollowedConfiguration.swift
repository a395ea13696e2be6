// SPDX-License-Identifier: Apache-2.0

import Platform
import Synchronization

/// A directory's configuration, as this process follows it.
///
/// There are no notifications: after ``interval`` the next caller checks whether the file has changed.
final class FollowedConfiguration: Sendable {
    private struct State {
        var configuration = DirectoryConfiguration()
        /// The file that was last read; nil if it was missing.
        var file: Mark?
        /// Why that file is not used.
        var failure: CacheError?
        /// Whether this process has read a configuration, or found the file missing.
        var isKnown = false
    }

    /// Identifies one state of the file, which a process replaces, or which an editor writes in place.
    private struct Mark: Equatable {
        let identity: FileStatus.Identity
        let size: Int64
        let modified: Timestamp
        let changed: Timestamp
    }

    /// Time between checks, in ms.
    ///
    /// All processes follow a change within a second: this is half of it, because the other half may pass until the next
    /// caller checks.
    private static let interval: UInt64 = 500

    private let directory: StoreDirectory
    private let state = Locked(State())
    /// The time of the next check, by ``Timestamp/monotonicMilliseconds``.
    private let nextLook = Atomic<UInt64>(0)
    /// ``CacheLimits/maximumAge`` in nanoseconds, for frequent readers; the largest number if there is no such limit.
    private let maximumAge = Atomic<Int64>(.max)

    init(of directory: StoreDirectory) {
        self.directory = directory
    }

    /// The configuration at the last check.
    var present: DirectoryConfiguration { state.withLock { $0.configuration } }

    /// Returns the limits for a put.
    ///
    /// No system call if they were read before; otherwise one or four.
    ///
    /// - Throws: The read error, if this process has never read the limits: the put might exceed them.
    func limitsForPut() throws(CacheError) -> CacheLimits {
        // Whatever prevented reading may be gone.
        if state.withLock({ !$0.isKnown }) { look() }
        return try state.withLock { (state) throws(CacheError) in
            if let failure = state.failure, !state.isKnown { throw failure }
            return state.configuration.limits
        }
    }

    /// The maximum age of values, in nanoseconds; `Int64.max` if there is no such limit.
    ///
    /// One load.
    var longestAge: Int64 { maximumAge.load(ordering: .relaxed) }

    /// Why the present file can't be used; nil if it can be used.
    ///
    /// While it can't be used, the configuration before it stays in effect.
    var failure: CacheError? { state.withLock { $0.failure } }

    /// Whether there was a file at the last check, and it can be used.
    var hasFile: Bool { state.withLock { $0.file != nil && $0.failure == nil } }

    /// Returns whether the next check is due; true for one caller.
    ///
    /// No system call.
    func isDue() -> Bool {
        let now = Timestamp.monotonicMilliseconds
        let due = nextLook.load(ordering: .relaxed)
        guard now >= due else { return false }
        return nextLook.compareExchange(expected: due, desired: now + Self.interval, ordering: .relaxed)
            .exchanged
    }

    /// Checks the file.
    ///
    /// One system call, and three more if the file has changed. If it can't be read or parsed, the configuration stays as
    /// it was: an editing mistake must neither stop a cache nor lift its limits. A process that has never read a
    /// configuration stores nothing (``limitsForPut()``). The error is in ``failure``.
    func look() {
        nextLook.store(Timestamp.monotonicMilliseconds + Self.interval, ordering: .relaxed)
        // Get the status before reading: if the file is written meanwhile, the next check finds a change.
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
            // Invalid contents stay invalid; any other error, for example a lack of descriptors, is temporary.
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
    /// - Throws: ``CacheError/Code/badConfiguration`` if the present file can't be read; then it is left unchanged.
    func update(_ change: (inout DirectoryConfiguration) throws(CacheError) -> Void) throws(CacheError) {
        // A process that changes the configuration at the same time must not undo this change.
        guard let lock = try directory.lock(StoreLayout.formatLock, patience: Self.patience) else {
            throw CacheError(.busy, to: "change the limits of", path: directory.path, cause: .timedOut)
        }
        var configuration = try DirectoryConfiguration.read(in: directory.root, path)
        let before = configuration
        try change(&configuration)
        if configuration != before { try write(configuration) }
        lock.release()
    }

    /// How long to wait for another process that changes the configuration.
    private static let patience: Duration = .milliseconds(700)

    /// Replaces the file atomically.
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
