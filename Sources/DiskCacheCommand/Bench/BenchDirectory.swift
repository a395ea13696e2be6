// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// A new directory for a benchmark; the user's cache is never used.
struct BenchDirectory {
    let path: String

    /// Creates `diskcache-bench-PID-RANDOM` on the file system to measure.
    ///
    /// The new directory is inside `place` if that is a directory but not a cache, otherwise next to it.
    ///
    /// - Parameter isDefault: Whether `place` is the default directory. Its parent (`~/.cache`) is then created if it is
    ///   missing, as any program may do.
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
            // The parent is not created: it would have to be removed again, while other processes may already use it.
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
        // The last component of such a path does not name the directory, so removing it would give a wrong parent.
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
