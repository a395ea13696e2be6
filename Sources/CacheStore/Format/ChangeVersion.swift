// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The place of a change, a put or a removal of a key, in the order of all changes on all machines.
///
/// ```
/// bits 12…63  microseconds since 1970, by the hybrid logical clock of the machine that made the change
/// bits  0…11  the number of that machine
/// ```
///
/// Two changes have the same version only if two machines drew it in the same microsecond, and their numbers, which are
/// random, are the same. The clock never goes back, and moves beyond every version that the machine has taken from
/// another one (Kulkarni et al., "Logical Physical Clocks", 2014).
package struct ChangeVersion: Sendable, Hashable, Comparable {
    package let rawValue: UInt64

    /// Before all changes.
    package static let none = ChangeVersion(rawValue: 0)
    /// After all changes.
    package static let highest = ChangeVersion(rawValue: .max)

    /// How far versions of a machine may be ahead of the clock of another machine that takes them.
    package static let furthestAhead: Duration = .seconds(3600)
    /// How far ahead of the time of day a clock is set that can't be restored.
    ///
    /// Versions that were taken from other machines may be ahead by ``furthestAhead``. The rest is for changes of the time of
    /// day.
    static let uncertainty = furthestAhead + .seconds(600)

    /// Returns a version that is later than all versions that this machine may have drawn or seen, if its clock is right.
    static func uncertain(at now: Timestamp) -> ChangeVersion {
        ChangeVersion(at: now + uncertainty, machine: 0)
    }

    static let machineBits: UInt64 = 12
    private static let machineMask: UInt64 = 1 << machineBits - 1
    private static let latestMicrosecond: UInt64 = 1 << (64 - machineBits) - 1

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Creates a version; times before 1970 and after 2112 become the first and the last one.
    package init(at moment: Timestamp, machine: UInt64) {
        let microseconds = UInt64(max(0, moment.nanoseconds / 1000))
        self.init(microseconds: min(microseconds, Self.latestMicrosecond), machine: machine)
    }

    private init(microseconds: UInt64, machine: UInt64) {
        rawValue = microseconds << Self.machineBits | machine & Self.machineMask
    }

    /// Creates a version; nil if a number is too large.
    init?(microseconds: Int64, machine: UInt64) {
        guard microseconds >= 0, microseconds <= Self.latestMicrosecond, machine <= Self.machineMask else {
            return nil
        }
        self.init(microseconds: UInt64(microseconds), machine: machine)
    }

    /// The number of the machine that made the change.
    var machine: UInt64 { rawValue & Self.machineMask }

    /// Microseconds since 1970.
    var microseconds: Int64 { Int64(rawValue >> Self.machineBits) }

    /// The time of the change by the clock of the machine that made it.
    package var moment: Timestamp { Timestamp(nanoseconds: 0) + .microseconds(microseconds) }

    /// Returns the first version of `machine` that is later than this one, and not before `moment`.
    func next(at moment: Timestamp, machine: UInt64) -> ChangeVersion {
        let wall = ChangeVersion(at: moment, machine: machine)
        let microseconds = rawValue >> Self.machineBits
        guard microseconds < Self.latestMicrosecond else { return ChangeVersion(rawValue: .max) }
        return max(wall, ChangeVersion(microseconds: microseconds + 1, machine: machine))
    }

    /// Returns the version that is `time` later.
    func advanced(by time: Duration) -> ChangeVersion {
        max(self, ChangeVersion(at: moment + time, machine: machine))
    }

    package static func < (one: ChangeVersion, other: ChangeVersion) -> Bool {
        one.rawValue < other.rawValue
    }
}
