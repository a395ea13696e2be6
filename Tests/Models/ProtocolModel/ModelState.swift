// SPDX-License-Identifier: Apache-2.0

/// An explicit-state model of the lock protocol of the store (SharingBetweenProcesses in the DocC catalogue).
///
/// Two writers and one gc, of one thread or two, share two contents and two keys. One step is one system call.
/// Before each step any process may be killed, and the file system's coarse clock may tick. Times are only compared, so
/// three values represent all of them, and the clock needs no bound: see `FileTime`.
///
/// Not modelled: readers, which change nothing; file contents, and so the removal of corrupt files; a third writer; a
/// crash of the machine.
enum ProtocolModel {}

extension ProtocolModel {
    /// The bytes of an object.
    enum Content: UInt8 { case a, b }

    /// The key of an entry.
    enum Key: UInt8 { case k1, k2 }

    /// A ctime, relative to the one time that gc compares with.
    ///
    /// Until gc takes its stamp, `present` is the running tick of the clock, and a tick turns every `present`
    /// into `past`. From then on `present` is the tick of the stamp, and a tick leads on to `future`.
    enum FileTime: UInt8 { case absent, past, present, future }

    /// The value of the attribute `user.dc`, packed; all bits are zero if the attribute is missing.
    ///
    /// It identifies its writer, as the times in the real one do: no two puts leave the same record.
    struct Record: Hashable {
        private(set) var raw: UInt8 = 0

        static let none = Record()

        /// A record of `content`, published by a writer (0 or 1) or, with nil, before the model starts.
        init(_ content: Content, by writer: UInt8?) {
            let origin = (writer ?? 2) &+ 1
            raw = 1 | (content.rawValue &<< 1) | (origin &<< 2)
        }

        private init() {}

        var isNone: Bool { raw == 0 }
        var content: Content { raw & 2 == 0 ? .a : .b }
        /// The writer that put it, or nil if it was published before the model starts.
        var origin: UInt8? { (raw &>> 2) & 3 == 3 ? nil : ((raw &>> 2) & 3) &- 1 }

        func names(_ content: Content) -> Bool { !isNone && self.content == content }

        func isRewritten(by writer: UInt8) -> Bool { raw & (0x10 &<< writer) != 0 }

        func rewritten(by writer: UInt8) -> Record {
            var copy = self
            copy.raw |= 0x10 &<< writer
            return copy
        }
    }

    /// The target of a name under `entries/`.
    ///
    /// Inode 0: no such name; 1: an inode that exists before the model starts; 2 and 3: the inode that each writer may
    /// create.
    struct Entry: Hashable {
        var inode: UInt8 = 0
        var record = Record.none

        static let absent = Entry()
        var isAbsent: Bool { inode == 0 }
    }

    /// A flock on one of the two stripes of a kind.
    enum Hold: UInt8 {
        case none, shared0, shared1, exclusive0, exclusive1

        static func shared(_ stripe: UInt8) -> Hold { stripe == 0 ? .shared0 : .shared1 }
        static func exclusive(_ stripe: UInt8) -> Hold { stripe == 0 ? .exclusive0 : .exclusive1 }

        func excludes(_ other: Hold) -> Bool {
            switch self {
            case .none: false
            case .shared0: other == .exclusive0
            case .shared1: other == .exclusive1
            case .exclusive0: other == .exclusive0 || other == .shared0
            case .exclusive1: other == .exclusive1 || other == .shared1
            }
        }
    }

    /// A process that makes one call: a put, a remove or a `setExpiration`.
    struct Writer: Hashable {
        var step: WriterStep
        var objectLock = Hold.none
        var entryLock = Hold.none
        /// The record that `setExpiration` read, which must still be there when it rewrites it.
        var read = Record.none
        var attempts: UInt8 = 0
        /// Ghost: the call has returned to its caller.
        var hasReturned = false
        /// Ghost: `setExpiration` has replaced the record.
        var hasRewritten = false
        /// Ghost: gc deleted the record that this writer set, as planned.
        var wasTrimmed = false
        /// Ghost: the other writer had returned or died before this one started.
        var startedLast = false

        /// The process returns or dies: the kernel releases its locks, and its memory no longer matters.
        mutating func end(returning: Bool) {
            objectLock = .none
            entryLock = .none
            read = .none
            attempts = 0
            hasReturned = returning
            step = .ended
        }
    }

    /// The memory of one pass of gc.
    struct Collector: Hashable {
        var step: CollectorStep
        /// The index of the current stripe, key or content.
        var cursor: UInt8 = 0
        var objectLock = Hold.none
        var entryLock = Hold.none
        /// The first reading of the time stamp, which the stamp itself must be later than.
        var firstReading = FileTime.absent
        var hasStamp = false
        /// The entries to delete, as they were when they were scanned.
        var planned1 = Entry.absent
        var planned2 = Entry.absent
        var marksA = false
        var marksB = false
        /// Stripes (bit mask) whose barrier was skipped because a stopped process holds them.
        var skipped: UInt8 = 0
        /// Keys (bit mask) whose name was created or replaced since the listing began, which may miss them.
        var unlisted: UInt8 = 0
        /// Whether the wall clock was set back since the stamp, as detected by a clock that is never set.
        var sawClockSet = false
        /// With two threads: whether the first one deletes the entry that it has just read.
        var isReading = false
        /// With two threads: entries (bit mask) that are kept as they were read, unless they turn out to be dangling.
        var kept: UInt8 = 0
        /// With two threads: objects (bit mask) that exist.
        var listed: UInt8 = 0
        /// Ghost: the number of passes that have started before this one.
        var pass: UInt8 = 0

        /// Ends gc, by completion or death: its locks and its memory are released.
        mutating func end() {
            self = Collector(step: .ended, pass: pass)
        }

        /// The private state of the first thread.
        var thread: Thread {
            get { Thread(step: step, objectLock: objectLock, entryLock: entryLock, isReading: isReading) }
            set {
                (step, objectLock, entryLock) = (newValue.step, newValue.objectLock, newValue.entryLock)
                isReading = newValue.isReading
            }
        }

        subscript(planned key: Key) -> Entry {
            get { key == .k1 ? planned1 : planned2 }
            set { if key == .k1 { planned1 = newValue } else { planned2 = newValue } }
        }

        func marks(_ content: Content) -> Bool { content == .a ? marksA : marksB }

        mutating func mark(_ record: Record) {
            guard !record.isNone else { return }
            if record.content == .a { marksA = true } else { marksB = true }
        }
    }

    /// Everything on the disk and in the processes.
    ///
    /// All fields are single bytes, so that there is no padding and it hashes as plain bytes.
    struct State: FlatState {
        var objectA = FileTime.absent
        var objectB = FileTime.absent
        var entry1 = Entry.absent
        var entry2 = Entry.absent
        var clock = FileTime.present
        var writer0: Writer
        var writer1: Writer
        var collector: Collector
        /// The second thread of gc, if there is one.
        var helper = Thread()

        subscript(_ content: Content) -> FileTime {
            get { content == .a ? objectA : objectB }
            set { if content == .a { objectA = newValue } else { objectB = newValue } }
        }

        subscript(_ key: Key) -> Entry {
            get { key == .k1 ? entry1 : entry2 }
            set { if key == .k1 { entry1 = newValue } else { entry2 = newValue } }
        }

        subscript(writer index: UInt8) -> Writer {
            get { index == 0 ? writer0 : writer1 }
            set { if index == 0 { writer0 = newValue } else { writer1 = newValue } }
        }

        var isTerminal: Bool {
            writer0.step == .ended && writer1.step == .ended && collector.step == .ended
        }
    }
}

extension ProtocolModel.State {
    typealias Hold = ProtocolModel.Hold

    /// A process: 0 and 1 are the writers, 2 is gc, and 3 is gc's second thread, which has its own locks.
    typealias Process = UInt8

    /// Ends gc with all its threads, by completion or death.
    mutating func end() {
        collector.end()
        helper = .init()
    }

    /// Whether flock would grant the lock on an object stripe now.
    func grants(object hold: Hold, to process: Process) -> Bool {
        if process != 0 && hold.excludes(writer0.objectLock) { return false }
        if process != 1 && hold.excludes(writer1.objectLock) { return false }
        if process != 3 && hold.excludes(helper.objectLock) { return false }
        return process == 2 || !hold.excludes(collector.objectLock)
    }

    /// Whether flock would grant the lock on an entry stripe now.
    func grants(entry hold: Hold, to process: Process) -> Bool {
        if process != 0 && hold.excludes(writer0.entryLock) { return false }
        if process != 1 && hold.excludes(writer1.entryLock) { return false }
        if process != 3 && hold.excludes(helper.entryLock) { return false }
        return process == 2 || !hold.excludes(collector.entryLock)
    }

    /// Notes that a name appears or changes its inode: POSIX allows a listing that has not reached it to miss it.
    mutating func noteRename(of key: ProtocolModel.Key) {
        let isAhead =
            if helper.step == .ended {
                collector.step == .scan && collector.cursor <= key.rawValue
            } else {
                self[thread: key.rawValue].step == .scan
            }
        if isAhead {
            collector.unlisted |= 1 &<< key.rawValue
        }
    }
}
