// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// The main program: it finds the subcommand, and turns any error into one line and an exit status.
package enum DiskCacheTool {
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

    /// Executes the command line, and exits.
    ///
    /// - Parameters:
    ///   - network: The access to other machines. If it is nil but needed, this process executes `diskcache-net`.
    ///   - bodies: The functions of commands that need other machines, by the commands' names.
    package static func main(
        reaching network: (any Network)?,
        bodies: [String: (Arguments) throws -> ExitStatus] = [:]
    ) -> Never {
        // Without this, Swift's runtime prints a backtrace at Ctrl-\ and continues, but users expect the process to end.
        Signal.quit.restoreDefault()
        // A write beyond the file size limit (`ulimit -f`) must fail instead of ending the process.
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
            // The reader of the output has exited; filters do not report that.
            if error.errno == Errno.brokenPipe.rawValue { return .inputOutput }
            return report(message(of: error), ExitStatus(error.code))
        } catch let error as Errno {
            if error == .brokenPipe { return .inputOutput }
            if error == .tooManyOpenFiles {
                let advice = "close some, or raise the limit (ulimit -n)"
                return report("open a file: \(error): \(advice)", .inputOutput)
            }
            return report("write the output: \(error): check its destination", .inputOutput)
        } catch {
            return report("\(error)", .internal)
        }
    }

    /// Returns the error's message, with a hint if inodes are exhausted, for which the kernel also reports ENOSPC.
    private static func message(of error: CacheError) -> String {
        guard error.errno == Errno.noSpace.rawValue, let path = error.path,
            let space = FileSystemSpace(nearest: path), space.totalInodes > 0, space.availableInodes == 0
        else { return error.message }
        return error.message + "; the file system has no free inodes (df -i): delete files of any size"
    }

    private static func dispatch(
        _ words: [[UInt8]],
        _ network: (any Network)?,
        _ bodies: [String: (Arguments) throws -> ExitStatus]
    ) throws -> ExitStatus {
        let globals = try Arguments(
            words,
            Overview.options,
            command: "",
            directory: nil,
            operandsBeforeCommand: 0
        )
        if globals.has("version") {
            try Output.print("diskcache \(Overview.version)\n")
            return .done
        }
        if globals.has("help") || ["help"] == Set(globals.operands) {
            try Output.print(Overview.text(of: shown))
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
        // If standard error is closed, the exit status is all that can be reported.
        try? Output.complain(message)
        return status
    }
}

/// `diskcache complete -- WORD…`, for the scripts of shells.
///
/// Prints a line with ``Proposals/kind``, then ``Proposals/words``.
enum CompleteCommand: Command {
    static let name = "complete"
    static let operands = "[--] [WORD]…"
    static let summary = "list the completions of the last word of a command line"

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let proposals = Proposals(for: arguments.operands, among: DiskCacheTool.shown)
        let lines = ([proposals.kind] + proposals.words).map { $0 + "\n" }
        try Output.draw(lines.joined(), to: Terminal.standardOutput)
        return .done
    }
}

/// `diskcache man-page`, which `make install` uses.
enum ManualCommand: Command {
    static let name = "man-page"
    static let summary = "print the manual page in the format of man(1)"

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try Output.print(Manual.page(of: DiskCacheTool.shown))
        return .done
    }
}
