// SPDX-License-Identifier: Apache-2.0

import Platform

/// Reading the file of rules (``RemovalRules``).
enum RuleFile {
    /// What there is at its place.
    enum Finding {
        case missing
        /// Something else, or not all of it, or what this process may not read.
        case damaged
        case found(RemovalRules)
    }

    /// Bytes; a file with as many rules as there may be, all of them with long texts, has 200 KiB.
    private static let longest = 512 * 1024

    /// What the kernel says of a file that won't be read the next time either.
    private static let damage: [Errno] = [
        .accessDenied, .notPermitted, .inputOutput, .structureNeedsCleaning, .badMessage,
    ]

    /// Five system calls (`openat2`, `fstat`, `read` twice, `close`), one where there is none.
    static func read(in root: borrowing Directory) throws(Errno) -> Finding {
        do throws(Errno) {
            let bytes = try ifExists { () throws(Errno) in
                try root.open(StoreLayout.rules, .readOnly).readToEnd(limit: longest)
            }
            guard let bytes else { return .missing }
            guard let bytes, let rules = RemovalRules(bytes) else { return .damaged }
            return .found(rules)
        } catch {
            // Also of somebody else, as of a removal by root, or on a bad sector: a sweep could not end either, and only
            // whoever can't read it may put another one in its place.
            if error.tellsOfNoFile || Self.damage.contains(error) { return .damaged }
            throw error
        }
    }

    /// What a control file that is made now has to say of them.
    ///
    /// Of those that can't be read that there are some: then every value counts as removed until somebody finds out.
    static func marks(in root: borrowing Directory) -> RuleMarks {
        let finding = bestEffort { () throws(Errno) in try read(in: root) }
        switch finding {
        case .missing?: return RuleMarks()
        case .found(let rules)?:
            if rules.rules.isEmpty { return RuleMarks() }
            return RuleMarks(version: rules.version, latest: rules.latest)
        case .damaged?, nil:
            let now = Timestamp.now.wholeMilliseconds
            return RuleMarks(version: max(1, UInt64(now.milliseconds)), latest: now)
        }
    }
}
