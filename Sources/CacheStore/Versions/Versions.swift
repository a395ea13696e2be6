// SPDX-License-Identifier: Apache-2.0

import Platform

/// The versions of the changes that this machine makes and has seen (``ChangeVersion``).
///
/// A directory that has never used remote stores has no file `versions`, and draws none. Otherwise each change draws a
/// version under the exclusive stripe of its key and stores it in the record, whatever the mode of the remote stores is.
/// Before the entry of a key is deleted, its version is remembered in the file. So no older value of a server replaces a
/// newer one. `VersionModel` explores this protocol.
///
/// The clock is a word of the control file, and never passes the limit in the file `versions`. If one of the two files is
/// lost, it is restored from the other one; if both are lost, from the time of day, with ``ChangeVersion/uncertainty``.
package final class Versions: Sendable {
    private struct State: ~Copyable {
        var file: FileDescriptor?
        /// The identity of the file; while it is open, no other file has this inode.
        var identity: FileStatus.Identity?
        var machine: UInt64 = 0
        /// The limit of the clock, as this process has last read or set it.
        var limit = ChangeVersion.none
    }

    /// How far ahead of the clock its limit is set, so that the file is written every ten seconds at most.
    private static let lead: Duration = .seconds(10)
    /// How often a call repeats its work because the file was replaced meanwhile.
    private static let attempts = 100
    /// How long to wait for another process that changes the header of the file, which takes microseconds.
    ///
    /// The caller holds a stripe, for which others wait.
    private static let patience: Duration = .milliseconds(50)

    private let control: Control
    private let counters: StoreCounters
    private let clock: @Sendable () -> Timestamp
    private var directory: StoreDirectory { control.directory }
    private let state = Locked(State())

    /// Creates an object that opens no file yet.
    init(in control: Control, counters: StoreCounters, clock: @escaping @Sendable () -> Timestamp) {
        self.control = control
        self.counters = counters
        self.clock = clock
    }

    /// Whether changes need versions.
    ///
    /// One load.
    var areInUse: Bool { (control.words?.load(.clock) ?? 0) != 0 }

    // MARK: Clock

    /// Returns the version of a change that begins now; nil if the directory has never used remote stores.
    ///
    /// The caller has not changed anything yet. No system call but for the time of day; eight every ten seconds.
    ///
    /// - Parameter lock: the key's stripe. If it is shared, there were no versions when it was locked, and the result is nil.
    ///   If versions have come into use since then, no value of a server is taken anymore that is older than this change.
    func draw(under lock: borrowing StripeLock) throws(CacheError) -> ChangeVersion? {
        if lock.isExclusive { return try draw() }
        if control.words == nil {
            noteUnversioned()
        } else if areInUse {
            refuseOlder()
        }
        return nil
    }

    private func draw() throws(CacheError) -> ChangeVersion? {
        guard let words = try runningClock() else { return nil }
        var (machine, limit) = state.withLock { ($0.machine, $0.limit) }
        while true {
            let present = ChangeVersion(rawValue: words.load(.clock))
            let next = present.next(at: clock(), machine: machine)
            if next > limit {
                (machine, limit) = raiseLimit(to: next)
            } else if words.replace(present.rawValue, by: next.rawValue, at: .clock) {
                return next
            }
        }
    }

    /// Makes all later versions of this machine higher than `version`, which was taken from a server.
    package func advance(beyond version: ChangeVersion) throws(CacheError) {
        guard let words = try runningClock() else { return }
        if version > state.withLock({ $0.limit }) { _ = raiseLimit(to: version) }
        while true {
            let present = words.load(.clock)
            if present >= version.rawValue || words.replace(present, by: version.rawValue, at: .clock) {
                return
            }
        }
    }

    /// Returns whether a version from a server may be taken, and is not too far ahead of the time of day.
    ///
    /// If it were taken, all versions of this machine would be later, and other machines would not take them.
    package func isInTime(_ version: ChangeVersion) -> Bool { version <= latestInTime }

    /// The latest version that may be taken from a server.
    package var latestInTime: ChangeVersion {
        ChangeVersion(at: clock() + ChangeVersion.furthestAhead, machine: .max)
    }

    /// Returns the words of the control file; nil if its clock does not run, or if there is none.
    private func runningClock() throws(CacheError) -> MappedWords? {
        if control.countingWords == nil, !control.isImpossible {
            _ = try control.mapPresent(isWritable: true)
        }
        guard let words = control.countingWords else {
            noteUnversioned()
            return nil
        }
        return words.load(.clock) == 0 ? nil : words
    }

    /// Raises the limit of the clock to `version` or higher; returns the number of this machine, and the limit.
    private func raiseLimit(to version: ChangeVersion) -> (machine: UInt64, limit: ChangeVersion) {
        do throws(CacheError) {
            return try withFile { (file, state) throws(Errno) in
                // It is known since the file was opened.
                if version <= state.limit { return (state.machine, state.limit) }
                try changeHeader(of: file) { header in
                    if header.limit < version { header.limit = version.advanced(by: Self.lead) }
                    (state.machine, state.limit) = (header.machine, header.limit)
                }
                return (state.machine, state.limit)
            }
        } catch {
            // The clock goes on. It goes back only if the control file is lost before the limit can be raised. The next
            // attempt is made in ten seconds.
            counters.add(.controlFailure)
            return state.withLock { state in
                state.limit = max(state.limit, version.advanced(by: Self.lead))
                return (state.machine, state.limit)
            }
        }
    }

    // MARK: Memory

    /// Remembers the version of a key whose entry is about to be deleted.
    ///
    /// Three system calls. If they fail, no value with a version until now is taken from servers anymore.
    ///
    /// - Parameters:
    ///   - isRemoval: whether `version` is that of a removal; otherwise it is that of the entry.
    ///   - lock: the key's stripe, locked exclusively.
    func remember(
        _ version: ChangeVersion,
        of key: Digest,
        isRemoval: Bool,
        under lock: borrowing StripeLock
    ) {
        let offset = VersionFileLayout.offset(of: key)
        do throws(CacheError) {
            try withFile { (file, _) throws(Errno) in
                guard var bucket = VersionBucket(try file.read(VersionBucket.byteCount, at: offset)) else {
                    throw .badMessage
                }
                bucket.remember(version, of: key, isRemoval: isRemoval)
                try Self.write(bucket.bytes, to: file, at: offset)
            }
        } catch {
            counters.add(.controlFailure)
            refuseOlder()
        }
    }

    /// Takes no value from servers from now on that is older than the changes until now.
    ///
    /// Nothing happens in a directory that has never used remote stores. Six system calls.
    func refuseOlder() {
        do throws(CacheError) {
            guard let words = try runningClock(), let version = try draw() else { return }
            while true {
                let present = words.load(.cleared)
                if present >= version.rawValue { break }
                if words.replace(present, by: version.rawValue, at: .cleared) { break }
            }
            try withFile { (file, _) throws(Errno) in
                try changeHeader(of: file) { $0.cleared = max($0.cleared, version) }
            }
        } catch {
            // The control file has the version, unless it can't be used.
            counters.add(.controlFailure)
        }
    }

    /// Notes that the caller makes a change without a control file, and so without a version.
    ///
    /// The next control file then takes no value from servers that is older than itself. Nothing happens in a directory
    /// that has never used remote stores. One system call there; otherwise three, and eight the first time.
    func noteUnversioned() {
        do throws(CacheError) {
            let isThere = try describing("look at", path) { () throws(Errno) in
                try directory.root.presentStatus(of: StoreLayout.versions) != nil
            }
            if !isThere { return }
            try withFile { (file, _) throws(Errno) in
                let header = VersionFileHeader(try file.read(VersionFileHeader.byteCount))
                if header?.hasUnversioned != true {
                    try changeHeader(of: file) { $0.hasUnversioned = true }
                }
            }
        } catch {
            counters.add(.controlFailure)
        }
    }

    /// Values of servers are taken only if their version is higher.
    var cleared: ChangeVersion { ChangeVersion(rawValue: control.words?.load(.cleared) ?? 0) }

    /// Returns the latest version that this machine has seen of a key without an entry; if it is not known, at least that
    /// version.
    ///
    /// Three system calls.
    ///
    /// - Parameter lock: the key's stripe, locked exclusively.
    /// - Returns: whether the version is that of the key; an older value may be taken otherwise only if it is later.
    func latest(
        of key: Digest,
        under lock: borrowing StripeLock
    ) throws(CacheError) -> (version: ChangeVersion, isExact: Bool) {
        let offset = VersionFileLayout.offset(of: key)
        return try withFile { (file, _) throws(Errno) in
            guard let header = VersionFileHeader(try file.read(VersionFileHeader.byteCount)),
                let bucket = VersionBucket(try file.read(VersionBucket.byteCount, at: offset))
            else { throw .badMessage }
            if let version = bucket.version(of: key) { return (version, true) }
            return (max(header.floor, bucket.floor), false)
        }
    }

    // MARK: File

    /// Begins to draw versions, if the directory has none so far.
    ///
    /// The caller holds the `format` lock.
    ///
    /// - Parameter isFirstUse: whether the directory has never used remote stores, so that it may take values that servers
    ///   have already; but none that is older than a rule.
    func begin(isFirstUse: Bool) throws(CacheError) {
        guard let words = control.countingWords, words.load(.clock) == 0 else { return }
        // Values that are here already have their time of creation as their version.
        let moment = clock()
        let latest = min(control.latestCreated ?? moment, moment + ChangeVersion.furthestAhead)
        let now = ChangeVersion(at: max(moment, latest), machine: .max)
        if isFirstUse {
            let rule = words.load(.rulesVersion) == 0 ? 0 : Int64(clamping: words.load(.latestRule))
            var header = VersionFileHeader(machine: Self.freshMachine(), limit: now, floor: .none)
            if rule > 0 { header.cleared = ChangeVersion(at: Timestamp(milliseconds: rule), machine: 0) }
            try describing("create", path) { () throws(Errno) in try make(header) }
            words.store(header.cleared.rawValue, at: .cleared)
        }
        let limit = try withFile { (_, state) in state.limit }
        _ = words.replace(0, by: max(now, limit).rawValue, at: .clock)
    }

    private static func freshMachine() -> UInt64 { .random(in: 0..<1 << ChangeVersion.machineBits) }

    private var path: String { "\(directory.path)/\(StoreLayout.versions)" }

    /// Runs `body` with the file, and again with another file that has replaced it meanwhile.
    private func withFile<Value>(
        _ body: (borrowing FileDescriptor, inout State) throws(Errno) -> Value
    ) throws(CacheError) -> Value {
        try describing("use", path) { () throws(Errno) in
            for _ in 0..<Self.attempts {
                let value = try state.withLock { (state) throws(Errno) -> Value? in
                    if state.file == nil { try open(&state) }
                    guard let file = state.file.take() else { throw .noEntry }
                    let value = try body(file, &state)
                    // What was written to a file without this name is lost.
                    guard
                        try directory.root.presentStatus(of: StoreLayout.versions)?.identity == state.identity
                    else { return nil }
                    state.file = consume file
                    return value
                }
                if let value { return value }
            }
            throw .timedOut
        }
    }

    /// Opens the file, and creates or repairs it if necessary.
    private func open(_ state: inout State) throws(Errno) {
        let flags: OpenFlags = .readWrite
        var found = try ifExists { () throws(Errno) in try directory.root.open(StoreLayout.versions, flags) }
        if found == nil {
            // Its floor is set afterwards, because until then another process may write versions to a file that is gone.
            let header = VersionFileHeader(machine: Self.freshMachine(), limit: .highest, floor: .highest)
            try make(header)
            found = try directory.root.open(StoreLayout.versions, flags)
        }
        guard let file = found.take() else { throw .noEntry }
        let status = try file.status()
        state.identity = status.identity
        // Read without the lock, which a stopped process may hold.
        let isWhole = status.size == VersionFileLayout.byteCount
        let header = isWhole ? VersionFileHeader(try file.read(VersionFileHeader.byteCount)) : nil
        if let header, !header.isUnsettled, !header.hasUnversioned {
            (state.machine, state.limit) = (header.machine, header.limit)
        } else {
            try changeHeader(of: file) { header in
                (state.machine, state.limit) = (header.machine, header.limit)
            }
        }
        state.file = consume file
    }

    /// Creates a file with this header and empty buckets.
    private func make(_ header: VersionFileHeader) throws(Errno) {
        let draft = try TemporaryFile(in: directory, mode: FileMode.file)
        // Then the versions of removals can be written even if the disk is full.
        try draft.file.allocate(VersionFileLayout.byteCount)
        try Self.write(header.bytes, to: draft.file, at: 0)
        try draft.rename(to: directory.root, StoreLayout.versions)
    }

    /// Changes the header while no other process does.
    ///
    /// Sets the floor first if the file is new, and empties the file if it is damaged.
    private func changeHeader(
        of file: borrowing FileDescriptor,
        _ change: (inout VersionFileHeader) -> Void
    ) throws(Errno) {
        try file.lock(.exclusive, until: .now + Self.patience)
        defer { file.unlock() }
        let isWhole = try file.status().size == VersionFileLayout.byteCount
        let present = isWhole ? VersionFileHeader(try file.read(VersionFileHeader.byteCount)) : nil
        var header = if let present { present } else { try emptied(file) }
        if header.isUnsettled {
            let clock = ChangeVersion(rawValue: control.words?.load(.clock) ?? 0)
            let floor = clock == .none ? ChangeVersion.uncertain(at: self.clock()) : clock
            (header.floor, header.limit) = (floor, floor.advanced(by: Self.lead))
            header.cleared = cleared
        }
        if header.hasUnversioned, let words = control.countingWords, words.load(.clock) != 0 {
            settleUnversioned(&header, words)
        }
        change(&header)
        if header != present { try Self.write(header.bytes, to: file, at: 0) }
    }

    /// Takes no value from servers from now on that is older than the changes without versions.
    private func settleUnversioned(_ header: inout VersionFileHeader, _ words: MappedWords) {
        header.cleared = header.cleared(at: clock())
        header.limit = max(header.limit, header.cleared.advanced(by: Self.lead))
        header.hasUnversioned = false
        let cleared = header.cleared.rawValue
        for word in [ControlWord.cleared, .clock] {
            while true {
                let present = words.load(word)
                if present >= cleared || words.replace(present, by: cleared, at: word) { break }
            }
        }
    }

    /// Empties a damaged file; returns its new header, whose floor is not known yet.
    private func emptied(_ file: borrowing FileDescriptor) throws(Errno) -> VersionFileHeader {
        let header = VersionFileHeader(machine: Self.freshMachine(), limit: .highest, floor: .highest)
        try Self.write(header.bytes, to: file, at: 0)
        let empty = [UInt8](repeating: 0, count: VersionFileLayout.byteCount - VersionBucket.byteCount)
        try Self.write(empty, to: file, at: VersionBucket.byteCount)
        return header
    }

    /// Writes all bytes; less is written only if space runs out.
    private static func write(
        _ bytes: [UInt8],
        to file: borrowing FileDescriptor,
        at offset: Int
    ) throws(Errno) {
        guard try file.write(bytes.span, at: offset) == bytes.count else { throw .noSpace }
    }
}
