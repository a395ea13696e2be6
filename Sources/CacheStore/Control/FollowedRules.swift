// SPDX-License-Identifier: Apache-2.0

import Platform

/// The rules by which a process judges records.
enum RulesInForce: Sendable {
    case nothing
    /// The given rules, as far as their numbers do not exceed `upTo`.
    case these(RemovalRules, upTo: UInt64)
    /// There are rules whose file is missing or damaged, so it is unknown which values are still valid.
    case unknown
}

/// The rules of a directory, as this process last read them.
final class FollowedRules: Sendable {
    private struct Known {
        /// The address of the control file's words that the rules belong to.
        var mapping: UInt = 0
        var rules = RemovalRules()
    }

    private let known = Locked(Known())

    /// Returns the rules of `version` or later; `version` is the one in the control file mapped at `mapping`.
    ///
    /// No system call if this process has already read them, otherwise five. Rules are identified by the version stated in
    /// the file itself, never by its size, inode or times, which may be equal for two different files.
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
            // Another thread may have read later rules meanwhile.
            if known.mapping != mapping || known.rules.version < rules.version {
                known = Known(mapping: mapping, rules: rules)
            }
        }
        return .these(rules, upTo: version)
    }

    /// Returns the rules in the file as it is now, for callers without a control file.
    ///
    /// Five system calls, one if the file is missing.
    static func rulesOnDisk(in root: borrowing Directory) throws(Errno) -> RulesInForce {
        switch try RuleFile.read(in: root) {
        case .missing: .nothing
        case .damaged: .unknown
        case .found(let rules): .these(rules, upTo: .max)
        }
    }
}
