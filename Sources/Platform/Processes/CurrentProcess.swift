// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// Facts about this process.
package enum CurrentProcess {
    /// The bytes of an environment variable, which need not be UTF-8; nil where it is not set.
    ///
    /// C: `getenv`.
    package static func environmentBytes(_ name: String) -> [UInt8]? {
        unsafe getenv(name).map { unsafe [UInt8](cString: $0) }
    }

    /// The arguments but the program's name: bytes, which need not be UTF-8.
    package static var arguments: [[UInt8]] {
        var words: [[UInt8]] = []
        while let word = unsafe cplatform_argument(CInt(words.count + 1)) {
            unsafe words.append([UInt8](cString: word))
        }
        return words
    }

    /// This program's own file, also where it was replaced or deleted since: proc_pid_exe(5).
    ///
    /// Where /proc is not mounted, the path by which it was executed.
    package static let executable: String = {
        let link = "/proc/self/exe"
        guard !isThere(link), let path = unsafe cplatform_program() else { return link }
        return unsafe String(cString: path)
    }()

    /// The path of ``executable`` without symbolic links, to find what lies beside it; nil where nothing
    /// tells.
    ///
    /// Of a file that was deleted since it is the path that it had, with a remark of the kernel's behind it.
    ///
    /// C: `readlink`.
    package static var executablePath: String? {
        let link = executable
        let bytes = try? unsafe [UInt8](upTo: Int(PATH_MAX)) { (buffer) throws(Errno) in
            guard let text = unsafe buffer.assumingMemoryBound(to: CChar.self).baseAddress else { return 0 }
            return try systemCall(.readLink) { unsafe readlink(link, text, buffer.count) }
        }
        // No link: /proc is not mounted, and it is the path itself.
        return bytes.map { String(validating: $0, as: UTF8.self) } ?? link
    }

    /// Whether a path leads to something.
    ///
    /// C: `access`.
    static func isThere(_ path: String) -> Bool {
        unsafe access(path, F_OK) == 0
    }

    /// The bytes of the path of the working directory, without symbolic links.
    ///
    /// C: `getcwd`.
    ///
    /// - Throws: ``Errno/noEntry`` where it was removed.
    package static func workingDirectory() throws(Errno) -> [UInt8] {
        guard !SystemCall.workingDirectory.isRefused, let path = unsafe getcwd(nil, 0) else { throw .current }
        defer { unsafe free(path) }
        return unsafe [UInt8](cString: path)
    }

    /// `path` as it is if it begins with a slash, else behind the working directory: it stays right after a `chdir`.
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

    /// The namespace of processes in which ``identifier`` counts, by its inode; 0 where /proc does not tell.
    ///
    /// C: `stat`, once.
    package static let namespace = UInt32(
        truncatingIfNeeded: (try? FileStatus.of("/proc/self/ns/pid").identity.inode) ?? 0
    )

    /// How many processors it may run on now, at least 1.
    ///
    /// C: `sysconf(_SC_NPROCESSORS_ONLN)`.
    package static var processorCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// C: `geteuid`.
    package static var effectiveUser: UInt32 { geteuid() }

    // MARK: Descriptors

    /// Opens what is missing of the three standard descriptors, so that no file of the cache can get
    /// their numbers and be taken for the output.
    ///
    /// Each is opened the wrong way round, so that using it still fails (EBADF), as if it were closed.
    package static func occupyStandardDescriptors() {
        for (descriptor, flags) in [
            (STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY),
        ]
        where !Terminal.isOpen(descriptor) {
            // The lowest free number is this one. Where /dev/null can't be opened there is nothing to do.
            if !SystemCall.open.isRefused { _ = unsafe open("/dev/null", flags) }
        }
    }

    /// Closes all descriptors but the standard ones, which a caller may wait to see closed.
    ///
    /// Before Linux 5.9 it does nothing. Only for a program's first lines, as it has none of its own then.
    ///
    /// C: `close_range`.
    package static func closeInheritedDescriptors() {
        if !SystemCall.close.isRefused { _ = cplatform_close_from(3) }
    }

    // MARK: Ends

    /// Ends the process.
    ///
    /// C: `exit`.
    package static func exit(_ status: Int32) -> Never {
        Glibc.exit(status)
    }

    /// Ends this process by `signal`, as a child of it has ended, without a core file of its own.
    ///
    /// C: `setrlimit`, and what ``Signal/endProcess()`` calls.
    package static func end(like signal: Signal) -> Never {
        // A core file of this process would only replace the child's.
        var none = rlimit()
        _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        signal.endProcess()
        // As a shell says it, for a signal that does not end a process.
        exit(128 + signal.rawValue)
    }
}
