// SPDX-License-Identifier: Apache-2.0

/// Suggestions for mistyped words.
package enum Suggestion {
    /// Names of commands in other programs; by edit distance, `set` would match `get`.
    private static let otherNames = [
        "set": "put", "add": "put", "store": "put", "delete": "rm", "del": "rm", "remove": "rm", "list": "ls",
        "keys": "ls", "exists": "has", "flush": "clear", "purge": "clear", "prune": "gc",
    ]

    /// Returns " (did you mean get?)" for "gte"; empty if no candidate is similar.
    package static func words(for word: String, among candidates: [String]) -> String {
        guard let meant = nearest(to: word, among: candidates) else { return "" }
        return " (did you mean \(meant)?)"
    }

    /// Returns the candidate that the user probably meant, or nil.
    ///
    /// It is the only candidate that begins with the word, or else the first of those with the fewest mistakes, if there
    /// is at most one mistake per three letters. Case does not matter.
    static func nearest(to word: String, among candidates: [String]) -> String? {
        if let meant = otherNames[word.lowercased()], candidates.contains(meant) { return meant }
        let letters = Array(word.lowercased().utf8)
        // No command's name is longer, and the time for the comparison grows with the length.
        guard (2...40).contains(letters.count) else { return nil }
        let longer = candidates.filter { $0.utf8.starts(with: letters) }
        if longer.count == 1 { return longer[0] }
        let distances = candidates.map { (word: $0, mistakes: mistakes(letters, Array($0.utf8))) }
        let nearest = distances.min { $0.mistakes < $1.mistakes }
        guard let nearest, nearest.mistakes <= max(1, letters.count / 3) else { return nil }
        return nearest.word
    }

    /// Returns the number of letters that are omitted, inserted, replaced or swapped with their neighbor.
    ///
    /// This is the optimal string alignment distance.
    private static func mistakes(_ word: [UInt8], _ meant: [UInt8]) -> Int {
        var (older, last) = ([Int](), Array(0...meant.count))
        for row in 0..<word.count {
            var next = [row + 1]
            for column in 0..<meant.count {
                let isSame = word[row] == meant[column]
                var fewest = min(last[column] + (isSame ? 0 : 1), last[column + 1] + 1, next[column] + 1)
                if row > 0, column > 0, word[row] == meant[column - 1], word[row - 1] == meant[column] {
                    fewest = min(fewest, older[column - 1] + 1)
                }
                next.append(fewest)
            }
            (older, last) = (last, next)
        }
        return last[meant.count]
    }
}
