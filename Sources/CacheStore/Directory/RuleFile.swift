// SPDX-License-Identifier: Apache-2.0

import Platform

/// Reads the rules file (``RemovalRules``).
enum RuleFile {
    /// The result of reading the file.
    enum Finding {
        case missing
        /// The file is not a rules file, or is incomplete: it is unknown which values were removed.
        case damaged
        case found(RemovalRules)
    }

    /// The maximum size in bytes; a file with the maximum number of rules, all with long texts, has 200 KiB.
    private static let longest = 512 * 1024

    /// Reads the rules file.
    ///
    /// Five system calls (`openat2`, `fstat`, `read` twice, `close`), one if it is missing.
    ///
    /// - Throws: The error if this process can't read the file, including permissions and a failing medium: other processes
    ///   may know the rules, or this process may read them the next time.
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
    /// A damaged file counts as one that has rules: then every value counts as removed.
    ///
    /// - Throws: The error if this process can't read the file. A process that does not know the rules must not create a
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
