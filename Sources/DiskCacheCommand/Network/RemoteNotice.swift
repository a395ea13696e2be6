// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// Whether a directory is shared with other machines, as cheaply as that can be found out.
enum RemoteNotice {
    /// Longer files are no configuration.
    private static let longest = 64 * 1024

    /// Whether `config.json` in the directory at `path` has the word `"remote"`.
    ///
    /// Three system calls where there is no such file, else seven. What the file means is for those to find out
    /// who use it.
    static func isPresent(in path: String) -> Bool {
        do throws(Errno) {
            // As every file of a cache is opened: whatever is in its place, this neither follows it nor waits for it.
            let file = try Directory(opening: path).open(StoreLayout.configuration, .readOnly)
            return try file.readToEnd(limit: longest).map(mentionsRemote) ?? false
        } catch {
            return false
        }
    }

    static func mentionsRemote(_ json: [UInt8]) -> Bool {
        let word = Array("\"remote\"".utf8)
        guard json.count >= word.count else { return false }
        return (0...json.count - word.count).contains { start in
            json[start..<start + word.count].elementsEqual(word)
        }
    }
}
