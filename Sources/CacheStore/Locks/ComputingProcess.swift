// SPDX-License-Identifier: Apache-2.0

package import Platform

/// A process that is computing the value of a key, according to the lock's file.
///
/// For display only: the kernel knows who holds a lock, and no decision depends on this.
public struct ComputingProcess: Sendable, Equatable {
    /// The process identifier, as this process sees it.
    public let processIdentifier: Int32
    /// When it started, by the system's clock.
    package let moment: Timestamp

    package init(_ processIdentifier: Int32, since moment: Timestamp) {
        self.processIdentifier = processIdentifier
        self.moment = moment
    }

    /// Reads which process has written its line into a lock's file; nil if that process does not hold the lock.
    ///
    /// Also nil if this process can't see the holder. The identifier may be from another PID namespace, as in a container,
    /// where the same number identifies another process.
    init?(holding file: borrowing FileDescriptor) throws(Errno) {
        guard let noted = ComputingProcess(line: try file.read(Self.lineLength)),
            ProcFiles.lockHolders(inode: try file.status().identity.inode).contains(noted.processIdentifier)
        else { return nil }
        self = noted
    }

    /// Returns the process that computes the value of `key`, according to the lock's file and the kernel.
    ///
    /// Nil if this process sees none. Eight system calls.
    package static func current(of key: Digest, in directory: StoreDirectory) throws(CacheError)
        -> ComputingProcess?
    {
        let path = StoreLayout.flightName(key)
        do throws(Errno) {
            return try ComputingProcess(holding: directory.locks.open(path, .readOnly))
        } catch {
            // A file that is not regular names no process; acquiring the lock reports it.
            if error == .noEntry || error.isNotRegularFile { return nil }
            throw CacheError(errno: error, "read", path: "\(directory.path)/\(StoreLayout.locks)/\(path)")
        }
    }

    /// The length of a line, to which each line is padded, so that one replaces another completely.
    static let lineLength = 40

    /// `pid 123 since 1700000000.123`, spaces and a newline.
    var line: [UInt8] {
        let (seconds, rest) = moment.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        let thousandths = String(1000 + rest / 1_000_000).dropFirst()
        let text = "pid \(processIdentifier) since \(seconds).\(thousandths)"
        return [UInt8](text, filledTo: Self.lineLength)
    }

    /// Reads the output of ``line``; fails for any other text.
    init?(line bytes: [UInt8]) {
        let words = String(decoding: bytes, as: UTF8.self).split { $0 == " " || $0 == "\n" }
        guard words.count == 4, words[0] == "pid", words[2] == "since", let process = Int32(words[1]) else {
            return nil
        }
        let parts = words[3].split(separator: ".")
        guard parts.count == 2, let seconds = Int64(parts[0]), let thousandths = Int64(parts[1]),
            (0..<9_000_000_000).contains(seconds), (0..<1000).contains(thousandths)
        else { return nil }
        let moment = Timestamp(nanoseconds: 0) + .seconds(seconds) + .milliseconds(thousandths)
        self.init(process, since: moment)
    }
}
