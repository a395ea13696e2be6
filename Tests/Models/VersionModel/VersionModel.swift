// SPDX-License-Identifier: Apache-2.0

/// An explicit-state model of the order of all changes of one key, on two machines that share servers.
///
/// Each change, a put or a removal, has a version: a number that is stored with the value on disk and on the servers. Its
/// upper bits are the time of the machine's hybrid logical clock, its lowest bit is the machine's number, so no two
/// changes have the same version. The clock moves beyond every version that the machine takes from a server, or that the
/// sender finds there instead of its own, and never goes back (Kulkarni et al., "Logical Physical Clocks", 2014).
///
/// A machine has
///
/// - the entry on disk, which the disk may evict. It may have expired, so readers may ask the servers although it exists;
/// - the file of versions. It has a bounded table of the versions that the machine has seen of keys that are no longer on
///   disk; a floor, at least as high as each version of a removed key that was dropped from the table; and a limit that the
///   clock never passes without raising it first (`kept`);
/// - the control file with the clock, the outbox with the note of the latest change, and the file of rules with the
///   version of the last removal of all values;
/// - a writer, which holds the key's stripe from drawing its version to changing the entry;
/// - a reader, which asks a level, then compares the answer and stores it, with the stripe held exclusively;
/// - the sender, which waits for the stripe, reads the note and the entry, and updates the levels one after the other. If
///   there is no entry, or one that is older than the note, it sends a removal with the version of the note. It also puts
///   the entry into the first of two levels without a note.
///
/// A reader takes an answer only if the answer is newer than the last removal of all values, and not older than what the
/// machine knows of the key: the entry or the version in the table, or if there is neither, the floor, which the answer
/// must exceed. It takes removals in the same way: it remembers their versions.
///
/// Writers and senders may be killed at each step, and every participant may be slow. The table may be full. The mode of
/// the first machine may change: nothing is noted or sent unless it is `readWrite`, but versions are always drawn and
/// remembered. Files of the first machine may be lost and replaced: a new control file gets the clock from the file of
/// versions; a new file of versions gets its floor and limit from the clock; if both are lost, all three are the time of
/// the wall clock plus all that it, and versions taken so far, may be ahead. The wall clock may differ from the true time by
/// one in either direction, differently at each reading: it may be wrong, stand still or be set back. In one case the second
/// machine's clock may be ahead by much more; versions so far ahead are not taken, and a server's version so far ahead is
/// replaced by any other.
///
/// A request that was given up, or whose sender was killed, may be carried out at any later time. There are three kinds
/// of servers. One compares the version of a request with its own (a script in Redis). One carries out a request only if
/// its value is the one that the sender has read before and compared (`WATCH` in Redis, `If-Match` and `If-None-Match` in
/// S3). With a plain one (HTTP) the last request wins; there, too, the sender reads and compares before it sends.
///
/// The model checks, for servers of all kinds:
///
/// - What a get returns, or a removal made or seen on the machine, is never followed by an older version there. If the
///   value was evicted, and its version was dropped from the table, this still holds for the last removal.
/// - A change is newer than all that the machine has seen before, so nothing of that undoes it, and newer than what the
///   sender has found on servers instead of an earlier change.
///
/// For servers that compare or have conditions:
///
/// - The version of a server never decreases, unless the server loses the value.
/// - Once a note is struck out, each level has the change or a newer one, unless it loses that.
/// - A server that has answered a request has its version, or a later one that machines take.
/// - A server has no removal with the version of a value that is on disk, unless it has lost the value.
///
/// For plain servers: a request never replaces a version that the server had when the sender decided on the request.
///
/// What remains possible with a plain server: of two requests that are under way at the same time, or if one was given
/// up and is carried out late, the older one may be carried out last. A machine that has not seen the newer version then
/// takes the older one, until the key's next change is sent, or the value expires there or is deleted. A machine that has
/// seen the newer version treats the older one as a miss. The same is possible with all servers after they have lost a
/// value or a removal.
enum VersionModel {
    /// A deviation from the protocol that must be found.
    enum Mistake: UInt8, CaseIterable {
        /// A reader takes an answer whatever the machine has seen before.
        case versionUnchecked
        /// A reader compares an answer only with what the machine remembers about values that are gone.
        case entryUnchecked
        /// An answer is stored after the stripe was free in between.
        case adoptedWithoutStripe
        /// Versions of two machines that differ only in the machine's number count as the same.
        case machineNumberIgnored
        /// An evicted version is not remembered.
        case evictionForgotten
        /// An evicted version is remembered after the entry is gone.
        case evictionRememberedLate
        /// An eviction does not lock the stripe: it remembers the version of an entry, and deletes a later one.
        case evictedWithoutStripe
        /// A removal is not remembered.
        case removalForgotten
        /// A removal that was read from a server is not remembered.
        case seenRemovalForgotten
        /// A value that is returned without being stored is not remembered.
        case unstoredForgotten
        /// An older entry stays on disk if a value is returned without being stored.
        case olderEntryStays
        /// While the mode is off, no version is remembered.
        case offForgotten
        /// A removal of all values only raises the floor, which does not apply to keys in the table.
        case clearedLikeFloor
        /// The clock does not move beyond a version that was taken from a server.
        case clockNotMoved
        /// The clock does not move beyond a version that the sender has found on a server instead of its own.
        case clockNotMovedBySender
        /// A change takes the wall clock's time as its version.
        case wallClockOnly
        /// The clock passes the time that is kept in the file of versions.
        case clockNotKept
        /// A new control file begins with the wall clock's time.
        case clockNotRestored
        /// If the version of a removed key is dropped from the table, the floor stays.
        case floorNotRaised
        /// After an eviction, the table no longer shows that the key was removed before.
        case removalHidden
        /// A new file of versions begins without a floor.
        case floorNotRestored
        /// After another file of versions has replaced the first one, a process still writes to the first one.
        case oldFileUsed
        /// If both files are lost, the floor is the wall clock's time.
        case floorAtWallClock
        /// A version is taken however far it is ahead of the wall clock.
        case farAheadTaken
        /// A version on a server that is too far ahead is not replaced.
        case farAheadKept
        /// A writer draws its version before it holds the stripe.
        case drawnBeforeStripe
        /// The sender reads the entry while a writer holds the stripe.
        case noBarrier
        /// The sender sends an entry that is older than the note.
        case olderEntrySent
        /// The sender strikes out any note of the key.
        case struckWithoutNumber
        /// The sender strikes out the note when the first level has the change.
        case struckAfterFirstLevel
        /// A server's version is compared in one step and replaced unconditionally in another.
        case comparedBeforehand
        /// A request whose condition is not met counts as carried out.
        case conflictTakenAsDone
        /// The version of a plain server is not read before a request.
        case plainNotRead
        /// A removal deletes the server's value, and with it the version.
        case removalDeletes
        /// A value is put into the first level without a comparison if that had none.
        case fillUnconditional
    }

    /// A version, and whether it is that of a removal; 0 if there is none.
    ///
    /// The bits of a version, from the lowest: the machine's number (1), a counter (2), the time (4).
    struct Mark: FlatState {
        var byte: UInt8 = 0

        static let none = Mark()

        static func value(_ version: UInt8) -> Mark { Mark(byte: version) }

        static func removal(_ version: UInt8) -> Mark { Mark(byte: version | 0x80) }

        var version: UInt8 { byte & 0x7F }
        var isRemoval: Bool { byte & 0x80 != 0 }
        var isNone: Bool { byte == 0 }
    }

    enum Mode: UInt8, CaseIterable { case off, read, readWrite }
    enum SenderStep: UInt8 { case idle, compare, tell }

    /// The files of a machine that can be lost.
    enum Loss: UInt8, CaseIterable { case control, versions, outbox, versionsAndControl, all }

    struct Machine: FlatState {
        /// The version of the entry on disk; 0 if there is none.
        var entry: UInt8 = 0
        /// The version in the table of the file of versions; 0 if the key is not there.
        var seen: UInt8 = 0
        /// Whether the key was removed before the version in the table.
        var isRemovalSeen = false
        var floor: UInt8 = 0
        /// The version of the last removal of all values, in the file of rules.
        var cleared: UInt8 = 0
        /// Whether the machine still writes to a file of versions that another one has replaced.
        var hasOldFile = false
        /// A version that the clock has not passed, in the file of versions.
        var kept: UInt8 = 0
        var clock: UInt8 = 0
        /// The version of the latest note that is not struck out; 0 if there is none.
        var note: UInt8 = 0
        /// The changes that writers have begun; the second one exists only if a writer does not hold the stripe.
        var writer = Mark.none
        var secondWriter = Mark.none
        /// Whether the outbox has the note of the writer's change.
        var isNoted = false
        /// The answer that a reader has received.
        var answer = Mark.none
        /// Whether the answer has been compared, if that is a separate step.
        var isAccepted = false
        /// The entry that is about to be evicted, if that is a separate step.
        var evicting: UInt8 = 0
        var mode = Mode.readWrite
        var sender = SenderStep.idle
        var request = Mark.none
        /// The note that the sender has read; 0 if it puts a value into a level that lacks it.
        var number: UInt8 = 0
        var level: UInt8 = 0
        /// The version that the server had when the sender decided on the request; for a plain server, that of the last
        /// request that it had carried out.
        var base: UInt8 = 0
        /// The newest version that a get on this machine has returned, or of a change made or a removal seen here.
        var promised: UInt8 = 0
        /// The newest version that the sender has found on a server instead of its own.
        var found: UInt8 = 0
        /// The latest removal made or seen on this machine.
        var removed: UInt8 = 0
        /// The latest change that was noted; 0 if the outbox was lost since.
        var owed: UInt8 = 0
        var changesLeft: UInt8

        var isStripeFree: Bool { writer.isNone && secondWriter.isNone }
    }

    struct State: FlatState {
        private var first: Machine
        private var second: Machine
        private var near = Mark.none
        private var far = Mark.none
        /// The version of the last request that each level has carried out.
        private var lastNear: UInt8 = 0
        private var lastFar: UInt8 = 0
        /// A request that was given up, and its level.
        var late = Mark.none
        var lateLevel: UInt8 = 0
        var lateBase: UInt8 = 0
        /// The true time.
        var now: UInt8 = 1
        var left: Budget
        var isBroken = false

        init(_ left: Budget, changes: (UInt8, UInt8)) {
            first = Machine(changesLeft: changes.0)
            second = Machine(changesLeft: changes.1)
            self.left = left
        }

        subscript(machine index: Int) -> Machine {
            get { index == 0 ? first : second }
            set { if index == 0 { first = newValue } else { second = newValue } }
        }

        subscript(level index: Int) -> Mark {
            get { index == 0 ? near : far }
            set { if index == 0 { near = newValue } else { far = newValue } }
        }

        subscript(lastOn index: Int) -> UInt8 {
            get { index == 0 ? lastNear : lastFar }
            set { if index == 0 { lastNear = newValue } else { lastFar = newValue } }
        }
    }

    /// How often each rare event may still happen.
    struct Budget: FlatState {
        var modes: UInt8 = 0
        var losses: UInt8 = 0
        var drops: UInt8 = 0
        var lateRequests: UInt8 = 0
        var ticks: UInt8 = 0
        /// Values that are returned without being stored, because there is no space.
        var unstored: UInt8 = 0
        /// Removals of all values, which are not sent.
        var clearings: UInt8 = 0
        /// Values that a server loses.
        var lostValues: UInt8 = 0
    }

    enum Move {
        case draw(Int, isRemoval: Bool, at: UInt8)
        case change(Int)
        case killWriter(Int)
        case removeAll(Int, at: UInt8)
        case evict(Int)
        case chooseForEviction(Int)
        case ask(Int, level: Int)
        case accept(Int)
        case adopt(Int)
        case returnUnstored(Int)
        case reject(Int)
        case send(Int)
        case fill(Int)
        case compare(Int)
        case tell(Int)
        case giveUp(Int)
        case lateRequest
        case drop(Int)
        case dropOfAnotherKey(Int)
        case lose(Int, Loss)
        case mode(Int, Mode)
        case time
        case loseValue(level: Int)
    }

    enum Server: UInt8 { case comparing, conditional, plain }

    struct Model {
        var server = Server.comparing
        var levels = 1
        /// How many changes each machine may make.
        var changes: (UInt8, UInt8) = (1, 1)
        var budget = Budget()
        /// Whether the second machine's clock may be ahead by far more than the versions that are taken.
        var isFarAhead = false
        var mistake: Mistake?
        /// Whether to check that the version of a server does not decrease.
        var checksServers: Bool

        init(_ server: Server) {
            self.server = server
            checksServers = server != .plain
        }
    }
}
