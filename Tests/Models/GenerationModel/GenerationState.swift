// SPDX-License-Identifier: Apache-2.0

/// An explicit-state model of the control file's generation words, which keep copies in memory coherent.
///
/// Two writers and two readers, in up to three processes, share one or two keys whose generation is one word.
/// One step is one system call or one atomic operation; operations are sequentially consistent here. A reader
/// starts over for ever; a process may die before each step of a writer. Meanwhile a sweep clears counts that
/// dead writers left, entries are reclaimed, and the control file itself may be rebuilt by others.
///
/// **How coherence is decided.** Everything published for a key is numbered in the order in which it reached the
/// disk. That order is the witness of linearizability: the writes take effect when they are published, and a
/// read may return a number only if, when it began, neither a later one had been put or removed by a call that
/// had returned, nor been returned by another read that had ended (`Register.floor`). If that holds for every
/// read then each of them can be given a place after the publication of what it returned, before that of what
/// follows, in an order that agrees with the order of calls in time: so the history is linearizable. A miss has
/// the number of what was written last before it found nothing, be that a remove or what gc has reclaimed since;
/// so one that is kept may be told as long as a copy of that number might. What a dead writer has
/// published has a number too, but raises no floor until a read returns it: it takes effect at once, or from
/// any later moment, or never. Conversely, among puts no other order will do: a process without copies can read
/// each number from the disk as soon as it is published, and that of a remove by its miss.
///
/// To a call that begins as late and ends as early as it can the rule is strictest. So beginning is one step with
/// the first look at what is shared, and ending one with the last; flock likewise with the step that follows and
/// unlock with the one before it, as to hold a lock for longer only keeps others from steps.
///
/// Not modelled: a count of 65 536 writers, all dead; weaker orders of memory than sequential consistency.
enum GenerationModel {}

extension GenerationModel {
    /// Two keys with the same leading bits, so that they share one generation word and one stripe.
    enum Key: UInt8 { case k1, k2 }

    /// A generation: version << 3 | writers in progress, as the real one is version << 16 | writers.
    struct Word: Hashable {
        var raw: UInt8 = 0

        static let start = Word()
        /// Where the words of a rebuilt control file start: none of them was ever in the one before.
        static let otherStart = Word(raw: 0x80)
        private static let version: UInt8 = 8

        var writers: UInt8 { raw & (Self.version - 1) }

        /// A writer adds itself.
        mutating func add() { raw &+= 1 }
        /// A writer takes itself off; below zero this borrows from the version, as the real word would.
        mutating func takeOff() { raw &-= 1 }
        mutating func raise() { raw &+= Self.version }
        /// Like a writer who never ends.
        mutating func close() { raw |= 4 }
        /// No writer is left.
        mutating func clear() { raw &-= writers }
    }

    /// A copy in a memory tier, or that there was no entry, and the word that it is held under; number 0: none.
    struct Slot: Hashable {
        var number: UInt8 = 0
        /// There was nothing, after what has this number was written.
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

    /// Which inode: the first control file or the one that replaces it.
    enum File: UInt8 { case none, first, second }

    /// What the header of a control file says.
    enum Phase: UInt8 { case missing, forming, ready, superseded }

    /// A control file: its phase, and the one word of its table that matters.
    struct Control: Hashable {
        var phase = Phase.missing
        var word = Word.start
    }

    /// A key's entry on the disk, and the monitor of its history.
    struct Register: Hashable {
        /// The number of the record on the disk, which then is `published`; 0: there is none.
        var disk: UInt8 = 1
        /// The number of the last write that reached the disk; a remove has one too.
        var published: UInt8 = 1
        /// A read that begins now must not return a lower number.
        var floor: UInt8 = 1
    }

    /// A put or remove, once; all is reset when it has returned or died.
    struct Writer: Hashable {
        /// Index of the next of `Model.writerSteps`.
        var next: UInt8 = 0
        var holdsStripe = false
        var file = File.none
        /// The word as this writer left it at its last look.
        var word = Word.start
        var number: UInt8 = 0
        /// Nobody else wrote under the word in between, as far as it knows.
        var mayHold = false
        /// It was a remove, and there was nothing.
        var hasFoundNothing = false

        static let ended = Writer(next: .max)
    }

    /// A thread that gets one key, again and again; all is reset when a read ends.
    struct Reader: Hashable {
        var step = ReaderStep.start
        var floor: UInt8 = 0
        var file = File.none
        /// The copy from memory, or what was read from the disk and may be held.
        var copy = Slot()
        var mayHold = false

        /// An order of no meaning, different for different readers.
        var rank: UInt64 {
            let step = UInt64(step.rawValue) &<< 40 | UInt64(floor) &<< 32 | UInt64(file.rawValue) &<< 24
            return step | UInt64(copy.number) &<< 16 | UInt64(copy.word.raw) &<< 8
                | (mayHold ? 1 : 0) | (copy.isAbsence ? 2 : 0)
        }
    }

    /// Everything on the disk, in the control files and in the processes; bytes without padding.
    struct State: Hashable {
        var key1 = Register()
        var key2 = Register()
        /// The control file that the path leads to.
        var path = File.first
        var first = Control(phase: .ready)
        var second = Control()
        var process0 = Process()
        var process1 = Process()
        /// Has writers only, so that its memory tier does not matter.
        var process2 = Process()
        var writer0 = Writer.ended
        var writer1 = Writer.ended
        var reader0 = Reader()
        var reader1 = Reader()
        /// A sweep holds the stripe exclusively and has read the word.
        var isSweeping = false
        var sweptFile = File.none
        var sweptWord = Word.start
        var rebuild = RebuildStep.none
        /// A read has returned what no linearizable history has.
        var isBroken = false

        func hash(into hasher: inout Hasher) {
            withUnsafeBytes(of: self) { hasher.combine(bytes: $0) }
        }
    }
}

extension GenerationModel.State {
    subscript(_ key: GenerationModel.Key) -> GenerationModel.Register {
        get { key == .k1 ? key1 : key2 }
        set { if key == .k1 { key1 = newValue } else { key2 = newValue } }
    }

    /// The control file behind an inode; `.none` is like a missing one.
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

    /// Whether a writer that lives holds the stripe, shared.
    var isStripeShared: Bool { writer0.holdsStripe || writer1.holdsStripe }

    /// Whether one can map the control file that the path leads to.
    var hasUsablePath: Bool {
        switch self[path].phase {
        case .forming, .ready: true
        case .missing, .superseded: false
        }
    }
}
