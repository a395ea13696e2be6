// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// The main program: finds the subcommand, and turns any error into one line and an exit status.
package enum DiskCacheTool {
    static let version = "0.1.0"

    /// The commands shown to users, in the order of the overview.
    static var shown: [any Command.Type] {
        [
            PutCommand.self, GetCommand.self, HasCommand.self, RemoveCommand.self, ClearCommand.self,
            TouchCommand.self, IncrementCommand.self, ListCommand.self, InfoCommand.self, RunCommand.self,
            LockCommand.self, ServeCommand.self, FetchCommand.self, PushCommand.self, PullCommand.self,
            CollectCommand.self, StatsCommand.self, VerifyCommand.self, LogCommand.self, DoctorCommand.self,
            ConfigCommand.self, DirectoryCommand.self, BenchCommand.self, CompletionsCommand.self,
        ]
    }

    /// The commands for internal use.
    static var hidden: [any Command.Type] {
        [BenchWorkerCommand.self, RefreshCommand.self, CompleteCommand.self, ManualCommand.self]
    }

    static let options = [
        Option("-d, --dir DIR  the cache directory"), Option("-h, --help  show help"),
        Option("--version  print the version"),
    ]

    /// Executes the command line, and ends the process.
    ///
    /// - Parameters:
    ///   - network: The access to other machines; if it is nil and needed, the process becomes `diskcache-net`.
    ///   - bodies: The functions that run the commands which need other machines, by the commands' names.
    package static func main(
        reaching network: (any Network)?,
        bodies: [String: (Arguments) throws -> ExitStatus] = [:]
    ) -> Never {
        // Swift's runtime prints a backtrace at Ctrl-\ and continues, but users want the process to end.
        Signal.quit.restoreDefault()
        // A write beyond the file size limit (`ulimit -f`) must fail, and not end the process.
        Signal.fileSizeLimit.ignore()
        CurrentProcess.occupyStandardDescriptors()
        CurrentProcess.exit(run(CurrentProcess.arguments, reaching: network, bodies: bodies).rawValue)
    }

    /// Runs one command line.
    static func run(
        _ words: [[UInt8]],
        reaching network: (any Network)? = nil,
        bodies: [String: (Arguments) throws -> ExitStatus] = [:]
    ) -> ExitStatus {
        do {
            return try dispatch(words, network, bodies)
        } catch let failure as Failure {
            return report(failure.message, failure.status)
        } catch let error as CacheError {
            // The reader of the output has exited, which is not worth a message, as with any filter.
            if error.errno == Errno.brokenPipe.rawValue { return .inputOutput }
            return report(message(of: error), ExitStatus(error.code))
        } catch let error as Errno {
            if error == .brokenPipe { return .inputOutput }
            if error == .tooManyOpenFiles {
                let advice = "close some, or raise the limit (ulimit -n)"
                return report("open a file: \(error): \(advice)", .inputOutput)
            }
            return report("write the output: \(error): check where it goes", .inputOutput)
        } catch {
            return report("\(error)", .internal)
        }
    }

    /// Returns the error's message, with a hint about inodes if those are exhausted (the kernel reports ENOSPC).
    private static func message(of error: CacheError) -> String {
        guard error.errno == Errno.noSpace.rawValue, let path = error.path,
            let space = FileSystemSpace(nearest: path), space.totalInodes > 0, space.availableInodes == 0
        else { return error.message }
        return error.message + "; it is inodes that are used up (df -i), so delete files, however small"
    }

    private static func dispatch(
        _ words: [[UInt8]],
        _ network: (any Network)?,
        _ bodies: [String: (Arguments) throws -> ExitStatus]
    ) throws -> ExitStatus {
        let globals = try Arguments(words, options, command: "", directory: nil, operandsBeforeCommand: 0)
        if globals.has("version") {
            try Output.print("diskcache \(version)\n")
            return .done
        }
        if globals.has("help") || ["help"] == Set(globals.operands) {
            try Output.print(overview)
            return .done
        }
        var words = globals.commandLine
        var name = globals.operands.first
        // "help put" is equivalent to "put --help".
        if name == "help" {
            name = globals.operands[1]
            words = [words[1], Array("--help".utf8)]
        }
        guard let name else { throw Failure.usage("missing command: see `diskcache --help`") }
        guard let command = (shown + hidden).first(where: { $0.name == name }) else {
            let suggestion = Suggestion.words(for: name, among: shown.map { $0.name })
            throw Failure.usage("unknown command '\(name)'\(suggestion): see `diskcache --help`")
        }
        let rest = Array(words.dropFirst())
        let directory = globals.value("dir")
        return try command.main(rest, directory: directory, reaching: network, body: bodies[name])
    }

    private static func report(_ message: String, _ status: ExitStatus) -> ExitStatus {
        // If even standard error is closed, the exit status must suffice.
        try? Output.complain(message)
        return status
    }

    // Shared by the overview and the manual page.

    static let promise =
        "One cache directory for all processes of a machine: no server, no wrong bytes, safe at any kill."

    static let conventions = """
        The directory is --dir, else $DISKCACHE_DIR, else ${XDG_CACHE_HOME:-~/.cache}/diskcache; `put`,
        `incr`, `run`, `lock`, `serve` and `config set` create it if it is missing. Sizes are written like 64K or
        2G (powers of 1024), times like 90s, 15m, 1h30m, 7d.

        A scope, --scope or $DISKCACHE_SCOPE, is a text that the commands about single keys put in front of
        each: with the scope thumbs/ the key 17 is stored as thumbs/17, as `ls`, --prefix and --glob know it.
        """

    static let statuses = """
        0 done; 1 a miss, or nothing found; 64 usage; 65 corrupt data found; 69 a server can't be used;
        70 internal; 73 can't create; 74 input or output; 75 try again; 77 permission; 78 configuration
        """

    private static var overview: String {
        let lines = shown.map { Table.line(["  \($0.name)", $0.summary], [.left, .left], widths: [13, 0]) }
        return """
            Usage: diskcache [--dir DIR] COMMAND [OPTION]…

            \(promise)

            Commands (each has --help):
            \(lines.joined())
            Options:
            \(options.map(\.line).joined())
            \(conventions)

            Exit status: \(statuses).

            """
    }
}
