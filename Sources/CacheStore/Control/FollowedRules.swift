// SPDX-License-Identifier: Apache-2.0

import Platform

/// The rules by which a process judges records.
enum RulesInForce: Sendable {
    case nothing
    /// Of these the ones up to a number.
    case these(RemovalRules, upTo: UInt64)
    /// There are some whose file is gone or damaged: which values are still meant to be there nobody can know.
    case unknown
}

/// The rules of a directory as far as this process has read them.
final class FollowedRules: Sendable {
    private struct Known {
        /// Of the control file by whose word they were read.
        var mapping: UInt = 0
        var rules = RemovalRules()
    }

    private let known = Locked(Known())

    /// The rules of at least this version, which the control file that is mapped at `mapping` has.
    ///
    /// No system call where this process has read them, else five. By the version that the file itself states, never by
    /// its size, inode or times, which may be the same for two files.
    func rules(
        since version: UInt64,
        of mapping: UInt,
        in root: borrowing Directory
    ) throws(Errno) -> RulesInForce {
        let present = known.withLock { known -> RemovalRules? in
            known.mapping == mapping && known.rules.version >= version ? known.rules : nil
        }
        if let present { return .these(present, upTo: version) }
        guard case .found(let rules) = try RuleFile.read(in: root), rules.version >= version else {
            return .unknown
        }
        known.withLock { known -> Void in
            // Another thread may have read later ones.
            if known.mapping != mapping || known.rules.version < rules.version {
                known = Known(mapping: mapping, rules: rules)
            }
        }
        return .these(rules, upTo: version)
    }

    /// Those of the file as it is now, for who has no control file to ask: five system calls, one where there is none.
    static func rulesOnDisk(in root: borrowing Directory) throws(Errno) -> RulesInForce {
        switch try RuleFile.read(in: root) {
        case .missing: .nothing
        case .damaged: .unknown
        case .found(let rules): .these(rules, upTo: .max)
        }
    }
}
