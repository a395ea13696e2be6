// SPDX-License-Identifier: Apache-2.0

import Platform

/// Reads the rules file (``RemovalRules``).
enum RuleFile {
    /// The result of reading the file.
    enum Finding {
        case missing
        /// The file is something else, or incomplete: the removed values are not known.
        case damaged
        case found(RemovalRules)
    }

    /// The maximum size in bytes; with the maximum number of rules, all of them with long texts, the file has 200 KiB.
    private static let longest = 512 * 1024

    /// Reads the rules file.
    ///
    /// Five system calls (`openat2`, `fstat`, `read` twice, `close`), one if it is missing.
    ///
    /// - Throws: The error if this process can't read it, including permissions and a failing medium: other processes may
    ///   know the rules, or this process the next time.
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

    /// Returns the state of the rules that a new control file starts with.
    ///
    /// A damaged file counts as having rules: then every value counts as removed.
    ///
    /// - Throws: The error if this process can't read the file. A process that does not know the rules must not make a
    ///   control file.
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
