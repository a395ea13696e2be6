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
        if isDefault {
            do {
                try FileManager.default.createDirectory(atPath: base, withIntermediateDirectories: true)
            } catch {
                throw .init(.cannotCreate, "bench: make \(base): \(error): choose a place with --dir")
            }
        }
        var generator = SystemRandomNumberGenerator()
        let random = String(generator.next() >> 32, radix: 36)
        path = base + "/diskcache-bench-\(CurrentProcess.identifier)-\(random)"
        do throws(Errno) {
            try Directory.make(path, mode: 0o700)
        } catch {
            // Not made: it would have to be removed again, and may be another's by then.
            if error == .noEntry {
                throw .init(
                    .cannotCreate,
                    "bench: there is no directory \(base): make it, or choose another with --dir"
                )
            }
            throw .init(.cannotCreate, "make \(path): \(error): choose a place with --dir")
        }
    }

    static func base(near place: String) -> String {
        var isDirectory = false
        let isThere = FileManager.default.fileExists(atPath: place, isDirectory: &isDirectory)
        let isCache = FileManager.default.fileExists(atPath: place + "/format")
        if isThere, isDirectory, !isCache { return place }
        var parts = place.split(separator: "/", omittingEmptySubsequences: true)
        // Not below a last part that would lead elsewhere.
        guard let last = parts.last, last != "..", last != "." else { return place }
        parts.removeLast()
        let parent = (place.hasPrefix("/") ? "/" : "") + parts.joined(separator: "/")
        return parent.isEmpty ? "." : parent
    }

    func remove() throws(Failure) {
        do {
            try FileManager.default.removeItem(atPath: path)
        } catch {
            throw Failure(.inputOutput, "remove \(path): \(error): remove it by hand")
        }
    }

    /// Files in the `tmp` of a cache, where nothing may be left once no process works on it.
    static func temporaries(in cache: String) -> Int {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: cache + "/tmp").count
        } catch {
            // It is made only where it is needed.
            return 0
        }
    }
}
