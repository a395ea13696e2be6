// SPDX-License-Identifier: Apache-2.0

package import Platform

/// A value that arrives bit by bit, in a file that outlives the process which fetches it.
///
/// One for each key, in `tmp/`. One process at a time has it, by flock(2): when that one dies the next can go
/// on where it broke off. What is there, and what it is the beginning of, a note beside the bytes says, which
/// is kept as an extended attribute: where the file system has none nothing can be continued.
///
/// The usage counts it, before it grows (``Store/reserve(_:of:in:now:)``). A sweep deletes one that nobody has, after an
/// hour, or at once where room is needed.
package final class PartialFile: Sendable {
    /// The most bytes that the transport hands over at a time, doubled: room is reserved for them before they come.
    package static let longestPiece = 128 << 10
    /// The most bytes that a note may have: what fits into a block beside other attributes.
    package static let longestNote = 3000
    private static let note: StaticString = "user.dcp"

    /// Open for reading and for adding at its end.
    package let file: FileDescriptor
    private let area: TemporaryArea
    private let name: RelativePath
    private let control: Control
    private let state: Locked<State>

    private struct State {
        /// Bytes on disk that the usage counts for it.
        var counted: Int64
        /// Whether the name now belongs to another file, or to none.
        var isGone = false
    }

    private init(
        _ file: consuming FileDescriptor,
        _ area: TemporaryArea,
        _ name: RelativePath,
        _ control: Control,
        counted: Int64
    ) {
        self.file = file
        self.area = area
        self.name = name
        self.control = control
        state = Locked(State(counted: counted))
    }

    /// The one of `key`, made where there is none; nil where somebody else has it.
    ///
    /// About six system calls.
    package static func open(_ key: Digest, in parts: StoreParts) throws(CacheError) -> PartialFile? {
        let directory = parts.directory
        return try describing("fetch into", "\(directory.path)/\(StoreLayout.temporaries)") {
            () throws(Errno) in
            try open(StoreLayout.partialName(key), TemporaryArea(of: directory), parts.control)
        }
    }

    private static func open(
        _ name: RelativePath,
        _ area: TemporaryArea,
        _ control: Control
    ) throws(Errno) -> PartialFile? {
        while true {
            let file: FileDescriptor
            do throws(Errno) {
                file = try area.directory.open(name, [.readWrite, .create, .append], mode: FileMode.file)
            } catch {
                // Its maker was killed between making it an object and giving it that name.
                guard error == .accessDenied else { throw error }
                try area.directory.unlink(name)
                continue
            }
            guard try file.tryLock(.exclusive) else { return nil }
            let status = try file.status()
            // A sweep may have found it before it was locked.
            guard try area.directory.presentStatus(of: name)?.identity == status.identity else { continue }
            if status.linkCount == 1 {
                return PartialFile(file, area, name, control, counted: status.allocatedSize)
            }
            // Somebody has given it a second name: what is written here would change that.
            try area.directory.unlink(name)
        }
    }

    /// How long the one of `key` is now, and its note, whoever has it; nil where there is none.
    package static func state(
        of key: Digest,
        in directory: StoreDirectory
    ) throws(CacheError) -> (length: Int64, note: [UInt8]?)? {
        let name = StoreLayout.partialName(key)
        return try describing("look at", "\(directory.path)/\(StoreLayout.temporaries)") { () throws(Errno) in
            try ifExists { () throws(Errno) -> (length: Int64, note: [UInt8]?) in
                let file = try TemporaryArea(of: directory).directory.open(name, .readOnly)
                let noted: [UInt8]?? = bestEffort { () throws(Errno) in try file.attribute(Self.note) }
                return (length: try file.status().size, note: noted ?? nil)
            }
        }
    }

    // MARK: What is there

    /// The bytes so far.
    package func length() throws(Errno) -> Int {
        Int(try file.status().size)
    }

    /// What was noted when it was begun; nil where nothing was, or nothing can be.
    package var noted: [UInt8]? {
        let noted: [UInt8]?? = bestEffort { () throws(Errno) in try file.attribute(Self.note) }
        return noted ?? nil
    }

    /// Begins anew: there are no bytes any more, and no note.
    package func clear() throws(Errno) {
        // First the note: bytes of another body must never be found under it.
        do throws(Errno) {
            try file.removeAttribute(Self.note)
        } catch {
            if noted != nil { discard() }
        }
        try file.truncate(to: 0)
        count(0)
    }

    /// The length that room is reserved for when a body has to grow to `length` bytes: more than that, so that the next
    /// reservation is not due at once.
    ///
    /// - Parameter total: the length of the whole body, if it is known.
    package static func reservation(for length: Int, of total: Int? = nil) -> Int {
        let reserved = length + min(max(1 << 20, length / 8), 64 << 20)
        return total.map { min(reserved, $0) } ?? reserved
    }

    /// The most bytes on disk that the usage may count for a file of this size that a process is writing.
    ///
    /// A process counts what it reserves, and writes later. It may have received two pieces more than it has written.
    static func mostCounted(_ status: FileStatus, in directory: StoreDirectory) -> Int64 {
        let length = reservation(for: Int(clamping: status.size) + 2 * longestPiece)
        return max(status.allocatedSize, directory.allocation(of: length))
    }

    /// Bytes on disk that the usage counts for it.
    var counted: Int64 { state.withLock { $0.counted } }

    /// Has the usage count so many for it.
    func count(_ bytes: Int64) {
        let change = state.withLock { state in
            defer { state.counted = bytes }
            return bytes - state.counted
        }
        if change != 0 { control.addUsage(bytes: change, entries: 0) }
    }

    /// Notes what the bytes will be that are written from now on, into an empty file; false where it can't be
    /// noted.
    package func begin(noting bytes: [UInt8]) -> Bool {
        guard bytes.count <= Self.longestNote else { return false }
        let isNoted = bestEffort { () throws(Errno) -> Bool in
            try file.setAttribute(Self.note, to: bytes.span)
            return true
        }
        return isNoted ?? false
    }

    /// Deletes it: nobody is to go on with it.
    package func discard() {
        // Left there it is empty or says what it is, and a sweep deletes it in a day.
        bestEffort { () throws(Errno) in
            let own = try file.status().identity
            if try area.directory.presentStatus(of: name)?.identity == own { try area.directory.unlink(name) }
            state.withLock { $0.isGone = true }
            count(0)
        }
    }

    /// Lets others have it, from now on and not when this object goes; it is not written any more.
    package func letGo() {
        if !state.withLock({ $0.isGone }) {
            // Less than was reserved, if it broke off.
            bestEffort { () throws(Errno) in count(try file.status().allocatedSize) }
        }
        file.unlock()
    }

    private func forgetNote() {
        bestEffort { () throws(Errno) in try file.removeAttribute(Self.note) }
    }

    // MARK: Becoming an object

    /// The same file with a name that nobody else uses: nobody goes on with it, and its bytes don't change
    /// any more.
    func adopted(in store: StoreDirectory) throws(Errno) -> TemporaryFile {
        forgetNote()
        let fresh = StoreLayout.freshTemporary()
        try area.directory.rename(name, to: area.directory, fresh)
        state.withLock { $0.isGone = true }
        // From here on its space is claimed and counted as an object's.
        count(0)
        let own = try FileDescriptor.duplicate(file.rawValue)
        let adopted = TemporaryFile(named: fresh, own, area, in: store)
        try adopted.file.setMode(FileMode.object)
        return adopted
    }
}
