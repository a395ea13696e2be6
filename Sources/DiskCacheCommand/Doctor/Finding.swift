// SPDX-License-Identifier: Apache-2.0

/// The result of `doctor` for one subject.
package struct Finding: Encodable {
    /// The severity of a finding.
    package enum Level: String, Encodable {
        /// No problem was found.
        case fine
        /// The cache works, but needs more time or space than necessary.
        case fallback
        /// The user should act.
        case risk
    }

    /// What was checked, such as "file system".
    package let subject: String
    package let level: Level
    /// The observed state.
    package let state: String
    /// The remedy, or the cost of the fallback; nil if the finding is fine.
    package let advice: String?

    /// Returns a fine finding if `applies`, else nil.
    static func fine(_ subject: String, _ applies: Bool, _ state: String) -> Finding? {
        applies ? fine(subject, state) : nil
    }

    /// Returns a fine finding.
    package static func fine(_ subject: String, _ state: String) -> Finding {
        Finding(subject: subject, level: .fine, state: state, advice: nil)
    }

    /// Returns a risk finding.
    package static func risk(_ subject: String, _ state: String, _ advice: String) -> Finding {
        Finding(subject: subject, level: .risk, state: state, advice: advice)
    }

    /// Returns a fallback finding if `applies`, else nil.
    static func fallback(_ subject: String, _ applies: Bool, _ state: String, advice: () -> String)
        -> Finding?
    {
        applies ? Finding(subject: subject, level: .fallback, state: state, advice: advice()) : nil
    }

    /// Returns a risk finding if `applies`, else nil.
    static func risk(_ subject: String, _ applies: Bool, _ state: String, advice: () -> String) -> Finding? {
        applies ? risk(subject, state, advice()) : nil
    }
}
