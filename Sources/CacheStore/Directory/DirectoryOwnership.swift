// SPDX-License-Identifier: Apache-2.0

import Platform

extension StoreSetup {
    /// Refuses a directory that contains foreign files: they must not be mixed with a cache, which deletes files.
    func checkOwnership(of root: borrowing Directory) throws(CacheError) {
        // The root of a new ext4 contains lost+found, which does not count.
        var names = try describing("list", path) { () throws(Errno) in
            try root.names().filter { $0 != "lost+found" }
        }
        // A backup that skips the contents of caches keeps the tag file.
        let tag = StoreLayout.cacheDirectoryTag.description
        if names.contains(tag), try isOwnTag(in: root) { names.removeAll { $0 == tag } }
        if names.isEmpty { return }
        // Another process, alive or killed, may have begun to set up the directory: it creates `locks` first, and
        // everything else only after `locks/format`.
        let locks = try describing("list", "\(path)/locks") { () throws(Errno) in
            try ifExists { () throws(Errno) in try root.openDirectory(StoreLayout.locks).names() }
        }
        let isBegun = locks.map { $0.contains("format") || ($0.isEmpty && names == ["locks"]) } ?? false
        // A copy that is about to be renamed belongs to the cache, too.
        let foreign = names.filter {
            !StoreLayout.ownNames.contains($0) && StoreLayout.path(ofTemporary: $0) == nil
        }
        guard foreign.isEmpty, isBegun ? true : try isRemnant(names, in: root) else {
            throw CacheError(.notACache, to: "use", path: path)
        }
    }

    /// Returns whether a set-up of this directory has begun: then it is set up again if the `format` file is missing.
    func hasBegun(_ root: borrowing Directory) throws(CacheError) -> Bool {
        try describing("look at", "\(path)/locks/format") { () throws(Errno) in
            try ifFiled { () throws(Errno) in
                try root.openDirectory(StoreLayout.locks).status(of: StoreLayout.formatLock)
            } != nil
        }
    }

    /// Returns whether this program created the tag: other programs' caches have tags, too.
    private func isOwnTag(in root: borrowing Directory) throws(CacheError) -> Bool {
        let bytes = try describing("read", "\(path)/\(StoreLayout.cacheDirectoryTag)") { () throws(Errno) in
            try ifExists { () throws(Errno) in
                try root.open(StoreLayout.cacheDirectoryTag, .readOnly).readToEnd(limit: 1024)
            }
        }
        return bytes.map { $0 ?? [] } == Array(StoreLayout.cacheDirectoryTagText.utf8)
    }

    /// Returns whether each of `names` is the remnant of a deleted cache.
    ///
    /// While a cache is being deleted, a process that has it open recreates the parts that were deleted first.
    private func isRemnant(_ names: [String], in root: borrowing Directory) throws(CacheError) -> Bool {
        for name in names {
            let isOurs = try describing("look at", "\(path)/\(name)") { () throws(Errno) in
                do throws(Errno) {
                    // An entry that was deleted meanwhile does not count.
                    return try ifExists { () throws(Errno) in try isPart(name, in: root) } ?? true
                } catch {
                    // The file is of a different kind than the cache's, or this process can't access it.
                    if error.isNotRegularFile || error == .notDirectory || error == .accessDenied {
                        return false
                    }
                    throw error
                }
            }
            if !isOurs { return false }
        }
        return true
    }

    /// Returns whether a file or directory with one of the cache's names has the contents of that part of a cache.
    private func isPart(_ name: String, in root: borrowing Directory) throws(Errno) -> Bool {
        let path = RelativePath(name)
        switch name {
        case "objects", "entries":
            let shards = Set(StoreLayout.shards.map(\.description))
            return try root.openDirectory(path).names().allSatisfy { shards.contains($0) }
        case "tmp":
            return try root.openDirectory(path).names().allSatisfy {
                StoreLayout.path(ofTemporary: $0) != nil
            }
        case "locks":
            let names = StoreLayout.lockNames + [StoreLayout.requestsLock]
            let locks = Set(names.map(\.description))
            return try root.openDirectory(path).names().allSatisfy {
                locks.contains($0) || $0.hasPrefix(StoreLayout.flightPrefix)
                    || $0.hasPrefix(StoreLayout.permitPrefix)
            }
        case "control":
            let file = try root.open(path, .readOnly)
            if try ControlVersion.isControl(file) { return true }
            return try ControlPointer(in: file) != nil
        case "candidates":
            return try root.open(path, .readOnly).read(8) == Array(StoreLayout.candidatesSignature.utf8)
        case "rules":
            return try root.open(path, .readOnly).read(8) == Array(StoreLayout.rulesSignature.utf8)
        case "outbox", "outbox.1":
            let start = try root.open(path, .readOnly).read(2)
            return start.isEmpty || start == Array("ob".utf8)
        case "versions":
            return try root.open(path, .readOnly).read(8) == VersionFileHeader.signature
        case "events", "events.1":
            // Each batch begins with an empty line; a batch that could not be written leaves the file empty.
            return try root.open(path, .readOnly).read(1).allSatisfy { $0 == UInt8(ascii: "\n") }
        case "format":
            // Another process has just written it, although `locks` was deleted again.
            return try root.open(path, .readOnly).read(10) == Array("diskcache ".utf8)
        case "README":
            return try root.open(path, .readOnly).read(1024) == Array(StoreLayout.readmeText.utf8)
        default: return false
        }
    }
}
