// SPDX-License-Identifier: Apache-2.0

import Platform

/// Reading the file of rules (``RemovalRules``).
enum RuleFile {
    /// What there is at its place.
    enum Finding {
        case missing
        /// Something else, or a part of it: the removed values are not known.
        case damaged
        case found(RemovalRules)
    }

    /// Bytes; a file with as many rules as there may be, all of them with long texts, has 200 KiB.
    private static let longest = 512 * 1024

    /// Five system calls (`openat2`, `fstat`, `read` twice, `close`), one where there is none.
    ///
    /// - Throws: what keeps this process from reading it, also permissions and a medium that fails: others may know the
    ///   rules, or this process the next time.
    static func read(in root: borrowing Directory) throws(Errno) -> Finding {
        do throws(Errno) {
            let bytes = try ifExists { () throws(Errno) in
                try root.open(StoreLayout.rules, .readOnly).readToEnd(limit: longest)
            }
            guard let bytes else { return .missing }
            guard let bytes, let rules = RemovalRules(bytes) else { return .damaged }
            return .found(rules)
        } catch {
            if error.meaning == .notAFile { return .damaged }
            throw error
        }
    }

    /// What a control file that is made now has to say of them.
    ///
    /// Of a damaged file that there are some: then every value counts as removed.
    ///
    /// - Throws: what keeps this process from reading it. Who does not know the rules must make no control file.
    static func marks(in root: borrowing Directory) throws(Errno) -> RuleMarks {
        switch try read(in: root) {
        case .missing: return RuleMarks()
        case .found(let rules):
            if rules.rules.isEmpty { return RuleMarks() }
            return RuleMarks(version: rules.version, latest: rules.latest)
        case .damaged:
            let now = Timestamp.now.wholeMilliseconds
            return RuleMarks(version: max(1, UInt64(now.milliseconds)), latest: now)
        }
    }
}
