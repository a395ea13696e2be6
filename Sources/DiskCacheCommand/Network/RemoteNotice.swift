// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// A cheap check of whether a directory is shared with other machines.
enum RemoteNotice {
    /// The maximum length of a configuration in bytes; longer files are not configurations.
    private static let longest = 64 * 1024

    /// Whether `config.json` in the directory at `path` contains the word `"remote"`.
    ///
    /// Takes three system calls if the file is missing, else seven. The file is parsed later, by the code that uses it.
    static func isPresent(in path: String) -> Bool {
        do throws(Errno) {
            // Opened like every file of a cache: without following symbolic links, and without blocking.
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
