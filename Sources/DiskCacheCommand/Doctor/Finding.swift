// SPDX-License-Identifier: Apache-2.0

/// What `doctor` says about one subject.
struct Finding: Encodable {
    /// How much it matters.
    enum Level: String, Encodable {
        /// As it should be.
        case fine
        /// It works, but takes more time or space than necessary.
        case fallback
        /// Something to act on.
        case risk
    }

    /// "file system".
    let subject: String
    let level: Level
    /// What was found.
    let state: String
    /// What to do about it, or what it costs; nil if it is fine.
    let advice: String?

    /// A finding if `applies`, else nil.
    static func fine(_ subject: String, _ applies: Bool, _ state: String) -> Finding? {
        applies ? Finding(subject: subject, level: .fine, state: state, advice: nil) : nil
    }

    /// What is left when no other check applies.
    static func fine(_ subject: String, _ state: String) -> Finding? { fine(subject, true, state) }

    /// A finding if `applies`, else nil.
    static func fallback(_ subject: String, _ applies: Bool, _ state: String, advice: () -> String)
        -> Finding?
    {
        applies ? Finding(subject: subject, level: .fallback, state: state, advice: advice()) : nil
    }

    /// A finding if `applies`, else nil.
    static func risk(_ subject: String, _ applies: Bool, _ state: String, advice: () -> String) -> Finding? {
        applies ? Finding(subject: subject, level: .risk, state: state, advice: advice()) : nil
    }
}
