// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A file of the user's that is written whole or not at all.
package enum OutputFile {
    /// Writes `path` by way of a new file beside it, which takes its place when `body` has returned.
    ///
    /// Symbolic links are followed, and the file that they lead to is replaced; its permission bits stay.
    /// What is no regular file (a device, a pipe) and what is another name of an open file (`/dev/stdout`)
    /// is written to directly. Where there are unnamed files an interruption leaves nothing behind, but in the
    /// instant between giving the new file a name and moving it to its place.
    package static func write(
        _ path: String,
        _ body: (borrowing FileDescriptor) throws(Errno) -> Void
    ) throws(Errno) {
        switch try destination(of: path) {
        case .direct:
            // Opened anew, an open file starts at its beginning: what is there already must not be lost.
            try body(FileDescriptor(opening: path, [.writeOnly, .append]))
        case .replacing(let target, let mode):
            try replace(target, mode: mode, body)
        }
    }

    private enum Destination {
        case direct
        /// The file at the end of all links, and its permission bits if it is there.
        case replacing(String, mode: UInt32?)
    }

    /// Links that are followed before they count as a circle, path_resolution(7).
    private static let longestChain = 40

    private static func destination(of path: String) throws(Errno) -> Destination {
        var current = path
        for _ in 0..<longestChain {
            // Names that stand for what this process has open: a file put in their place would not be it.
            if current.hasPrefix("/proc/") || current.hasPrefix("/dev/fd/") { return .direct }
            var status = stat()
            do throws(Errno) {
                try nothingOrErrno { unsafe lstat(current, &status) }
            } catch {
                if error == .noEntry { return .replacing(current, mode: nil) }
                throw error
            }
            switch status.st_mode & S_IFMT {
            case S_IFREG: return .replacing(current, mode: status.st_mode & 0o7777)
            case S_IFLNK: current = try target(of: current)
            default: return .direct
            }
        }
        throw .tooManyLinks
    }

    private static func target(of link: String) throws(Errno) -> String {
        var failure: Errno?
        let text = unsafe String(unsafeUninitializedCapacity: Int(PATH_MAX)) { buffer in
            let start = unsafe UnsafeMutableRawPointer(buffer.baseAddress)?.assumingMemoryBound(
                to: CChar.self
            )
            guard let start = unsafe start else { return 0 }
            let count = unsafe readlink(link, start, buffer.count)
            if count < 0 { failure = .current }
            return max(0, count)
        }
        if let failure { throw failure }
        return text.hasPrefix("/") ? text : directory(of: link) + "/" + text
    }

    private static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private static func replace(
        _ path: String,
        mode: UInt32?,
        _ body: (borrowing FileDescriptor) throws(Errno) -> Void
    ) throws(Errno) {
        let directoryPath = directory(of: path)
        let directory = try Directory(opening: directoryPath)
        var generator = SystemRandomNumberGenerator()
        let name = ".\(String(generator.next(), radix: 36)).part"
        let draft = directoryPath + "/" + name
        guard let unnamed = try openUnnamed(in: directory) else {
            return try replace(path, byWayOf: draft, mode: mode, body)
        }
        try fill(unnamed, mode: mode, body)
        try directory.link(unnamed, as: RelativePath(name))
        try take(draft, to: path)
    }

    private static func replace(
        _ path: String,
        byWayOf draft: String,
        mode: UInt32?,
        _ body: (borrowing FileDescriptor) throws(Errno) -> Void
    ) throws(Errno) {
        let file = try FileDescriptor(opening: draft, [.readWrite, .create, .exclusive], mode: newFileMode)
        do throws(Errno) {
            try fill(file, mode: mode, body)
        } catch {
            _ = unsafe Glibc.unlink(draft)
            throw error
        }
        try take(draft, to: path)
    }

    /// Moves the draft to its place; where that fails nothing of it stays.
    private static func take(_ draft: String, to path: String) throws(Errno) {
        do throws(Errno) {
            try nothingOrErrno { unsafe rename(draft, path) }
        } catch {
            _ = unsafe Glibc.unlink(draft)
            throw error
        }
    }

    /// Less the umask, as a shell's redirection makes it.
    private static let newFileMode: UInt32 = 0o666

    private static func fill(
        _ file: borrowing FileDescriptor,
        mode: UInt32?,
        _ body: (borrowing FileDescriptor) throws(Errno) -> Void
    ) throws(Errno) {
        try body(file)
        if let mode { try file.setMode(mode) }
    }

    /// nil where the file system has no files without a name, or they can't be given one.
    private static func openUnnamed(in directory: borrowing Directory) throws(Errno) -> FileDescriptor? {
        guard Directory.canLinkUnnamed else { return nil }
        do throws(Errno) {
            return try directory.open(".", [.readWrite, .temporary], mode: newFileMode)
        } catch {
            switch error {
            case .notSupported, .isDirectory, .invalidArgument: return nil
            default: throw error
            }
        }
    }
}
