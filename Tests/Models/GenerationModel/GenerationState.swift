// SPDX-License-Identifier: Apache-2.0

/// An explicit-state model of the control file's generation words, which keep copies in memory coherent.
///
/// Two writers and two readers, in up to three processes, share one or two keys whose generation is one word.
/// One step is one system call or one atomic operation; operations are sequentially consistent here. A reader
/// starts over forever; a process may die before each step of a writer. Concurrently, a sweep clears counts that
/// dead writers left, entries are reclaimed, and the control file itself may be rebuilt by other processes.
///
/// **How coherence is decided.** Every publication for a key is numbered in the order in which it reached the
/// disk. That order is the witness of linearizability: writes take effect when they are published, and a read
/// may return a number only if, when it began, no later number had been put or removed by a call that had
/// returned, or been returned by another read that had ended (`Register.floor`). If that holds for every read,
/// then each read can be placed after the publication that it returned and before the next one, in an order
/// that agrees with the real-time order of calls: so the history is linearizable. A miss has the number of the
/// last write before it found no entry, either a remove or a put that gc has reclaimed since; so a held absence
/// may be returned as long as a copy of that number might. The publication of a dead writer has a number, too,
/// but raises no floor until a read returns it: it takes effect at once, or from any later moment, or never.
/// Conversely, no other order of puts is possible: a process without copies can read each number from the disk
/// as soon as it is published, and the number of a remove by its miss.
///
/// The rule is strictest for a call that begins as late and ends as early as possible. So its beginning is one
/// step with its first access to shared state, and its end is one step with the last access; likewise flock is
/// one step with the step that follows, and unlock with the step before it, because holding a lock for longer
/// only prevents steps of others.
///
/// Not modelled: a count of 65 536 writers, all dead; memory orders weaker than sequential consistency.
enum GenerationModel {}

extension GenerationModel {
    /// Two keys with the same leading bits, so that they share one generation word and one stripe.
    enum Key: UInt8 { case k1, k2 }

    /// A generation: version << 3 | writers in progress, as the real one is version << 16 | writers.
    struct Word: Hashable {
        var raw: UInt8 = 0

        static let start = Word()
        /// The initial value of the words of a rebuilt control file, which never occurred in the old one.
        static let otherStart = Word(raw: 0x80)
        private static let version: UInt8 = 8

        var writers: UInt8 { raw & (Self.version - 1) }

        /// A writer adds itself.
        mutating func add() { raw &+= 1 }
        /// A writer removes itself; below zero this borrows from the version, as in the real word.
        mutating func takeOff() { raw &-= 1 }
        mutating func raise() { raw &+= Self.version }
        /// Closes the word, as a writer that never ends would.
        mutating func close() { raw |= 4 }
        /// Clears the count of writers.
        mutating func clear() { raw &-= writers }
    }

    /// A copy or an absence in a memory tier, and the word under which it is held; empty if the number is 0.
    struct Slot: Hashable {
        var number: UInt8 = 0
        /// Whether there was no entry after the write with this number.
        var isAbsence = false
        var word = Word.start
    }

    /// A process: its memory tier and the control file that it has mapped.
    struct Process: Hashable {
        var file = File.none
        var slot1 = Slot()
        var slot2 = Slot()

        subscript(_ key: Key) -> Slot {
            get { key == .k1 ? slot1 : slot2 }
            set { if key == .k1 { slot1 = newValue } else { slot2 = newValue } }
        }
    }

    /// An inode: the first control file or the one that replaces it.
    enum File: UInt8 { case none, first, second }

    /// The phase in the header of a control file.
    enum Phase: UInt8 { case missing, forming, ready, superseded }

    /// A control file: its phase, and the only relevant word of its table.
    struct Control: Hashable {
        var phase = Phase.missing
        var word = Word.start
    }

    /// A key's entry on the disk, and the monitor of its history.
    struct Register: Hashable {
        /// The number of the record on the disk, which then equals `published`; 0 if there is no record.
        var disk: UInt8 = 1
        /// The number of the last write that reached the disk; a remove has one, too.
        var published: UInt8 = 1
        /// A read that begins now must not return a lower number.
        var floor: UInt8 = 1
    }

    /// One put or remove; all fields are reset when it has returned or died.
    struct Writer: Hashable {
        /// The index of the next step in `Model.writerSteps`.
        var next: UInt8 = 0
        var holdsStripe = false
        var file = File.none
        /// The word as this writer left it at its last access.
        var word = Word.start
        var number: UInt8 = 0
        /// Whether no one else wrote under the word in between, as far as the writer knows.
        var mayHold = false
        /// Whether it was a remove that found no entry.
        var hasFoundNothing = false

        static let ended = Writer(next: .max)
    }

    /// A thread that gets one key repeatedly; all fields are reset when a read ends.
    struct Reader: Hashable {
        var step = ReaderStep.start
        var floor: UInt8 = 0
        var file = File.none
        /// The copy from memory, or the value that was read from the disk and may be held.
        var copy = Slot()
        var mayHold = false

        /// An arbitrary rank, which differs between different readers.
        var rank: UInt64 {
            let step = UInt64(step.rawValue) &<< 40 | UInt64(floor) &<< 32 | UInt64(file.rawValue) &<< 24
            return step | UInt64(copy.number) &<< 16 | UInt64(copy.word.raw) &<< 8
                | (mayHold ? 1 : 0) | (copy.isAbsence ? 2 : 0)
        }
    }

    /// Everything on the disk, in the control files and in the processes; bytes without padding.
    struct State: FlatState {
        var key1 = Register()
        var key2 = Register()
        /// The control file that the path leads to.
        var path = File.first
        var first = Control(phase: .ready)
        var second = Control()
        var process0 = Process()
        var process1 = Process()
        /// The third process; it has only writers, so its memory tier does not matter.
        var process2 = Process()
        var writer0 = Writer.ended
        var writer1 = Writer.ended
        var reader0 = Reader()
        var reader1 = Reader()
        /// Whether a sweep holds the stripe exclusively and has read the word.
        var isSweeping = false
        var sweptFile = File.none
        var sweptWord = Word.start
        var rebuild = RebuildStep.none
        /// Whether a read has returned a value that no linearizable history allows.
        var isBroken = false
    }
}

extension GenerationModel.State {
    subscript(_ key: GenerationModel.Key) -> GenerationModel.Register {
        get { key == .k1 ? key1 : key2 }
        set { if key == .k1 { key1 = newValue } else { key2 = newValue } }
    }

    /// The control file of an inode; `.none` is like a missing one.
    subscript(_ file: GenerationModel.File) -> GenerationModel.Control {
        get {
            switch file {
            case .none: .init()
            case .first: first
            case .second: second
            }
        }
        set { if file == .first { first = newValue } else if file == .second { second = newValue } }
    }

    subscript(process index: UInt8) -> GenerationModel.Process {
        get { index == 0 ? process0 : index == 1 ? process1 : process2 }
        set {
            switch index {
            case 0: process0 = newValue
            case 1: process1 = newValue
            default: process2 = newValue
            }
        }
    }

    subscript(writer index: UInt8) -> GenerationModel.Writer {
        get { index == 0 ? writer0 : writer1 }
        set { if index == 0 { writer0 = newValue } else { writer1 = newValue } }
    }

    subscript(reader index: UInt8) -> GenerationModel.Reader {
        get { index == 0 ? reader0 : reader1 }
        set { if index == 0 { reader0 = newValue } else { reader1 = newValue } }
    }

    /// Whether a live writer holds the stripe shared.
    var isStripeShared: Bool { writer0.holdsStripe || writer1.holdsStripe }

    /// Whether the control file that the path leads to can be mapped.
    var hasUsablePath: Bool {
        switch self[path].phase {
        case .forming, .ready: true
        case .missing, .superseded: false
        }
    }
}
