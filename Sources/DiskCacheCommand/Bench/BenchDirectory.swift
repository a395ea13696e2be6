// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// The new directory that a benchmark uses; never the user's cache.
struct BenchDirectory {
    let path: String

    /// Creates `diskcache-bench-PID-RANDOM` on the file system to be measured: inside `place` if that is a directory but not
    /// a cache, otherwise next to it.
    ///
    /// - Parameter isDefault: Whether `place` is the default. Then the parent directory of all caches (`~/.cache`) is
    ///   created if it is missing, as any program that uses it may do.
    init(near place: String, isDefault: Bool = false) throws(Failure) {
        let base = Self.base(near: place)
        let random = String(UInt32.random(in: 0 ... .max), radix: 36)
        path = base + "/diskcache-bench-\(CurrentProcess.identifier)-\(random)"
        do {
            if isDefault {
                try FileManager.default.createDirectory(atPath: base, withIntermediateDirectories: true)
            }
            try Directory.make(path, mode: 0o700)
        } catch {
            // The parent is not created: it would have to be removed again, and other processes may use it by then.
            throw .init(
                .cannotCreate,
                "bench: create \(path): \(error): create \(base), or give another --dir"
            )
        }
    }

    static func base(near place: String) -> String {
        var isDirectory = false
        let isThere = FileManager.default.fileExists(atPath: place, isDirectory: &isDirectory)
        let isCache = FileManager.default.fileExists(atPath: place + "/format")
        if isThere, isDirectory, !isCache { return place }
        let parts = place.split(separator: "/")
        // The parent of such a path would be a different directory.
        if ["", ".", ".."].contains(parts.last ?? "") { return place }
        let parent = (place.hasPrefix("/") ? "/" : "") + parts.dropLast().joined(separator: "/")
        return parent.isEmpty ? "." : parent
    }

    func remove() throws(Failure) {
        do {
            try FileManager.default.removeItem(atPath: path)
        } catch {
            throw Failure(.inputOutput, "bench: remove \(path): \(error): remove it by hand")
        }
    }
}
