// SPDX-License-Identifier: Apache-2.0

package import Platform

/// A partial download, in a file that outlives the process that fetches the value.
///
/// Each key has at most one, in `tmp/`. One process at a time holds it, with flock(2). If that process dies, the next one
/// can resume the download. A note in an extended attribute identifies the body whose first bytes the file contains.
/// Without extended attributes no download can be resumed, and none is resumed after a restart of the machine: after a
/// power failure the file may have the right length and the wrong bytes.
///
/// The usage counts the file before it grows (``Store/reserve(_:of:in:now:)``). If no process holds the file, a sweep
/// deletes it after an hour; an explicit collection does so at once, and so does a sweep that needs room.
package final class PartialFile: Sendable {
    /// The bytes for which room is reserved in advance: twice the maximum that the transport delivers at a time.
    package static let longestPiece = 128 << 10
    /// The maximum length of a note in bytes; the note must fit in a block with other attributes.
    package static let longestNote = 2984
    private static let note: StaticString = "user.dcp"
    /// How long a caller waits for sweeps that check the file.
    private static let patience = Duration.seconds(1)

    /// Open for reading and for appending.
    package let file: FileDescriptor
    private let area: TemporaryArea
    private let name: RelativePath
    private let control: Control
    private let state: Locked<State>

    private struct State {
        /// Bytes on disk that the usage counts for the file.
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

    /// Opens or creates the partial download of `key`; nil if another caller holds it.
    ///
    /// About six system calls.
    package static func open(_ key: Digest, in control: Control) throws(CacheError) -> PartialFile? {
        let directory = control.directory
        return try describing("fetch into", "\(directory.path)/\(StoreLayout.temporaries)") {
            () throws(Errno) in
            try open(StoreLayout.partialName(key), TemporaryArea(of: directory), control)
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
                // This process may not write the file, for instance because of its mode or owner: replace it.
                guard error == .accessDenied else { throw error }
                try area.directory.unlink(name)
                continue
            }
            guard try lock(file) else { return nil }
            let status = try file.status()
            // A sweep may have deleted it before it was locked.
            guard try area.directory.presentStatus(of: name)?.identity == status.identity else { continue }
            if status.linkCount == 1 {
                return PartialFile(file, area, name, control, counted: status.allocatedSize)
            }
            // The file has a second name, under which its content would change, too.
            try area.directory.unlink(name)
        }
    }

    /// Locks the file for a download; false if another download holds it.
    private static func lock(_ file: borrowing FileDescriptor) throws(Errno) -> Bool {
        if try file.tryLock(.exclusive) { return true }
        // A download holds an exclusive lock. A sweep holds a shared one, for the few system calls of its check.
        guard try file.tryLock(.shared) else { return false }
        return try file.tryLock(.exclusive, until: .now + patience)
    }

    /// Returns the present length and the note of the partial download of `key`, even if a process holds it; nil if there is
    /// none.
    package static func state(
        of key: Digest,
        in directory: StoreDirectory
    ) throws(CacheError) -> (length: Int64, note: [UInt8]?)? {
        let name = StoreLayout.partialName(key)
        return try describing("look at", "\(directory.path)/\(StoreLayout.temporaries)") { () throws(Errno) in
            try ifExists { () throws(Errno) -> (length: Int64, note: [UInt8]?) in
                let file = try TemporaryArea(of: directory).directory.open(name, .readOnly)
                return (length: try file.status().size, note: note(of: file))
            }
        }
    }

    // MARK: Content

    /// Returns the number of bytes so far.
    package func length() throws(Errno) -> Int {
        Int(try file.status().size)
    }

    /// The note from the beginning of the download; nil if there is none, if it was written before the machine was
    /// restarted, or if the file system has no attributes.
    package var noted: [UInt8]? { Self.note(of: file) }

    private static func note(of file: borrowing FileDescriptor) -> [UInt8]? {
        let stored: [UInt8]?? = bestEffort { () throws(Errno) in try file.attribute(note) }
        guard let stored, let stored, let boot, stored.starts(with: boot) else { return nil }
        return Array(stored.dropFirst(boot.count))
    }

    /// The beginning of each note: the identity of the boot; nil if that is unknown.
    private static let boot: [UInt8]? = BootIdentity.current.map { (high, low) in
        var bytes: [UInt8] = []
        bytes.append(high, width: 8)
        bytes.append(low, width: 8)
        return bytes
    }

    /// Removes the bytes and the note.
    package func clear() throws(Errno) {
        // The note first: it must never accompany the bytes of another body.
        do throws(Errno) {
            try file.removeAttribute(Self.note)
        } catch {
            if noted != nil { discard() }
        }
        try file.truncate(to: 0)
        count(0)
    }

    /// Returns the length to reserve room for when a body must grow to `length` bytes.
    ///
    /// It exceeds `length`, so that the next reservation is not needed at once.
    ///
    /// - Parameter total: the length of the whole body, if known.
    package static func reservation(for length: Int, of total: Int? = nil) -> Int {
        let reserved = length + min(max(1 << 20, length / 8), 64 << 20)
        return total.map { min(reserved, $0) } ?? reserved
    }

    /// Returns the maximum number of bytes that the usage may count for a file of this size while a process writes it.
    ///
    /// A process adds the bytes that it reserves to the usage before it writes them. It reserves room for one piece more
    /// than the file contains; a second piece is a margin.
    static func mostCounted(_ status: FileStatus, in directory: StoreDirectory) -> Int64 {
        // Any process can give a file any length.
        let length = reservation(for: Int(min(status.size, 1 << 60)) + 2 * longestPiece)
        return max(status.allocatedSize, directory.allocation(of: length))
    }

    /// The bytes on disk that the usage counts for this file.
    var counted: Int64 { state.withLock { $0.counted } }

    /// Sets the bytes that the usage counts for this file.
    func count(_ bytes: Int64) {
        let change = state.withLock { state in
            defer { state.counted = bytes }
            return bytes - state.counted
        }
        if change != 0 { control.addUsage(bytes: change, entries: 0) }
    }

    /// Writes the note of an empty file, before its first bytes; returns false if the note can't be written.
    package func begin(noting bytes: [UInt8]) -> Bool {
        guard bytes.count <= Self.longestNote, let boot = Self.boot else { return false }
        let isNoted = bestEffort { () throws(Errno) -> Bool in
            try file.setAttribute(Self.note, to: (boot + bytes).span)
            return true
        }
        return isNoted ?? false
    }

    /// Deletes the file, so that no process resumes the download.
    package func discard() {
        // If this fails, the file is empty or has the note of its own bytes, and a sweep deletes it later.
        bestEffort { () throws(Errno) in
            let own = try file.status().identity
            if try area.directory.presentStatus(of: name)?.identity == own { try area.directory.unlink(name) }
            state.withLock { $0.isGone = true }
            count(0)
        }
    }

    /// Unlocks the file now, before this object is deinitialized.
    ///
    /// The caller must no longer write to it.
    package func letGo() {
        if !state.withLock({ $0.isGone }) {
            // If the download was interrupted, the file takes less space than was reserved.
            bestEffort { () throws(Errno) in count(try file.status().allocatedSize) }
        }
        file.unlock()
    }

    private func forgetNote() {
        bestEffort { () throws(Errno) in try file.removeAttribute(Self.note) }
    }

    // MARK: Becoming an object

    /// Gives the file a fresh name, so that no process resumes the download or changes its bytes.
    ///
    /// - Throws: ``Errno/noEntry`` if the file was discarded (``discard()``), or deleted by another program: another
    ///   download may have the name now.
    func adopted(in store: StoreDirectory) throws(Errno) -> TemporaryFile {
        if state.withLock({ $0.isGone }) { throw .noEntry }
        let present = try area.directory.presentStatus(of: name)
        guard try present?.identity == file.status().identity else { throw .noEntry }
        forgetNote()
        let fresh = StoreLayout.freshTemporary()
        try area.directory.rename(name, to: area.directory, fresh)
        state.withLock { $0.isGone = true }
        // From now on the file's space is claimed and counted like that of any object.
        count(0)
        let own = try FileDescriptor.duplicate(file.rawValue)
        let adopted = TemporaryFile(named: fresh, own, area, in: store)
        try adopted.file.setMode(FileMode.object)
        return adopted
    }
}
