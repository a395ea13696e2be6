// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// The fresh directory that a benchmark fills; never the cache that is in use.
struct BenchDirectory {
    let path: String

    /// Makes `diskcache-bench-PID-RANDOM` on the file system that is to be measured: inside `place` where
    /// that is a directory and no cache, else beside it, where the cache is or would be.
    ///
    /// - Parameter isDefault: whether the user named no place: then the directory of all caches
    ///   (`~/.cache`) is made where it is missing, as any program may that uses it.
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
            // Not made: it would have to be removed again, and may be another's by then.
            throw .init(
                .cannotCreate,
                "bench: make \(path): \(error): make \(base), or choose another with --dir"
            )
        }
    }

    static func base(near place: String) -> String {
        var isDirectory = false
        let isThere = FileManager.default.fileExists(atPath: place, isDirectory: &isDirectory)
        let isCache = FileManager.default.fileExists(atPath: place + "/format")
        if isThere, isDirectory, !isCache { return place }
        let parts = place.split(separator: "/")
        // Not below a last part that would lead elsewhere.
        if ["", ".", ".."].contains(parts.last ?? "") { return place }
        let parent = (place.hasPrefix("/") ? "/" : "") + parts.dropLast().joined(separator: "/")
        return parent.isEmpty ? "." : parent
    }

    func remove() throws(Failure) {
        do {
            try FileManager.default.removeItem(atPath: path)
        } catch {
            throw Failure(.inputOutput, "remove \(path): \(error): remove it by hand")
        }
    }
}
