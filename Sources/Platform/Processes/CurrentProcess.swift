// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// Facts about this process.
package enum CurrentProcess {
    /// Returns the bytes of an environment variable, which need not be UTF-8; nil if it is not set.
    ///
    /// C: `getenv`.
    package static func environmentBytes(_ name: String) -> [UInt8]? {
        unsafe getenv(name).map { unsafe [UInt8](cString: $0) }
    }

    /// The arguments without the program's name: bytes, which need not be UTF-8.
    package static var arguments: [[UInt8]] {
        var words: [[UInt8]] = []
        while let word = unsafe cplatform_argument(CInt(words.count + 1)) {
            unsafe words.append([UInt8](cString: word))
        }
        return words
    }

    /// A path of this program's executable file that stays valid if the file is replaced or deleted: proc_pid_exe(5).
    ///
    /// If /proc is not mounted, it is the path by which the program was executed.
    package static let executable: String = {
        let link = "/proc/self/exe"
        guard !isThere(link), let path = unsafe cplatform_program() else { return link }
        return unsafe String(cString: path)
    }()

    /// The path of ``executable`` without symbolic links, to find files next to it; nil if it can't be determined.
    ///
    /// For a deleted file it is the former path, with a suffix that the kernel appends.
    ///
    /// C: `readlink`.
    package static var executablePath: String? {
        let link = executable
        let bytes = try? unsafe [UInt8](upTo: Int(PATH_MAX)) { (buffer) throws(Errno) in
            guard let text = unsafe buffer.assumingMemoryBound(to: CChar.self).baseAddress else { return 0 }
            return try systemCall(.readLink) { unsafe readlink(link, text, buffer.count) }
        }
        // It is not a link: /proc is not mounted, and `link` is the path itself.
        return bytes.map { String(validating: $0, as: UTF8.self) } ?? link
    }

    /// Whether a path leads to an existing file.
    ///
    /// C: `access`.
    static func isThere(_ path: String) -> Bool {
        unsafe access(path, F_OK) == 0
    }

    /// Returns the bytes of the path of the working directory, without symbolic links.
    ///
    /// C: `getcwd`.
    ///
    /// - Throws: ``Errno/noEntry`` if the directory was removed.
    package static func workingDirectory() throws(Errno) -> [UInt8] {
        guard !SystemCall.workingDirectory.isRefused, let path = unsafe getcwd(nil, 0) else { throw .current }
        defer { unsafe free(path) }
        return unsafe [UInt8](cString: path)
    }

    /// Returns `path` unchanged if it begins with a slash, else appended to the working directory, so that it stays valid
    /// after a `chdir`.
    ///
    /// C: `getcwd` for a relative path.
    ///
    /// - Throws: ``Errno/noEntry`` if the working directory was removed.
    package static func absolutePath(_ path: String) throws(Errno) -> String {
        if path.hasPrefix("/") { return path }
        let directory = String(pathBytes: try workingDirectory())
        return directory == "/" ? "/\(path)" : "\(directory)/\(path)"
    }

    /// C: `getpid`.
    package static var identifier: Int32 { getpid() }

    /// The PID namespace of ``identifier``, as its inode number; 0 if /proc does not provide it.
    ///
    /// C: `stat`, once.
    package static let namespace = UInt32(
        truncatingIfNeeded: (try? FileStatus.of("/proc/self/ns/pid").identity.inode) ?? 0
    )

    /// The number of processors that are online, at least 1.
    ///
    /// C: `sysconf(_SC_NPROCESSORS_ONLN)`.
    package static var processorCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// C: `geteuid`.
    package static var effectiveUser: UInt32 { geteuid() }

    // MARK: Descriptors

    /// Opens each of the three standard descriptors that is closed, so that no file of the cache can get its number and
    /// be mistaken for the output.
    ///
    /// Each one is opened in the wrong direction, so that using it still fails (EBADF), as if it were closed.
    package static func occupyStandardDescriptors() {
        for (descriptor, flags) in [
            (STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY),
        ]
        where !Terminal.isOpen(descriptor) {
            // open(2) takes the lowest free number, which is this one. If /dev/null can't be opened, there is no remedy.
            if !SystemCall.open.isRefused { _ = unsafe open("/dev/null", flags) }
        }
    }

    /// Closes all inherited descriptors except the standard ones, because the process that opened them may wait until
    /// they are closed.
    ///
    /// Before Linux 5.9 it does nothing. Call it only at program start, before the program opens its own descriptors.
    ///
    /// C: `close_range`.
    package static func closeInheritedDescriptors() {
        if !SystemCall.close.isRefused { _ = cplatform_close_from(3) }
    }

    // MARK: Termination

    /// Ends the process.
    ///
    /// C: `exit`.
    package static func exit(_ status: Int32) -> Never {
        Glibc.exit(status)
    }

    /// Ends this process by `signal`, without dumping core, so that it ends as its child did.
    ///
    /// C: `setrlimit`, and the calls of ``Signal/endProcess()``.
    package static func end(like signal: Signal) -> Never {
        // A core file of this process would only replace the child's.
        var none = rlimit()
        _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        signal.endProcess()
        // Reached only if the signal does not end a process. Shells report a death by signal as this status.
        exit(128 + signal.rawValue)
    }
}
