// SPDX-License-Identifier: Apache-2.0

package import DiskCache
import Platform

/// A subcommand's options and operands.
package struct Arguments {
    package private(set) var operands: [String]
    private var values: [String: [String]] = [:]
    /// The command line of another program, as bytes, if the operands contain one; otherwise all operands.
    var commandLine: [[UInt8]]
    /// The command's name, which precedes its messages.
    package let command: String
    private let globalDirectory: String?
    /// The access to other machines; nil in `diskcache`.
    var network: (any Network)?

    init(_ scanned: ScannedOptions, options: [Option], command: String, directory: String?) {
        operands = scanned.operands
        commandLine = scanned.operands.map { Array($0.utf8) }
        self.command = command
        globalDirectory = directory
        for found in scanned.options {
            values[options[found.index].specification.name, default: []].append(found.value ?? "")
        }
    }

    /// Parses a command line.
    ///
    /// - Parameters:
    ///   - command: The command's name; empty for words that precede the command.
    ///   - operandsBeforeCommand: The number of operands before another program's command line; nil if there is no such
    ///     command line.
    init(
        _ words: [[UInt8]],
        _ options: [Option],
        command: String,
        directory: String?,
        operandsBeforeCommand: Int?
    ) throws(Failure) {
        let scanned: ScannedOptions
        do throws(OptionError) {
            scanned = try ScannedOptions(
                words.map { String(pathBytes: $0) },
                options,
                operandsBeforeCommand: operandsBeforeCommand
            )
        } catch {
            let (prefix, name) = command.isEmpty ? ("", "") : ("\(command): ", " \(command)")
            throw .usage("\(prefix)\(error.words(options)): see `diskcache\(name) --help`")
        }
        // Paths and the other program's command line are bytes; all other words must be text.
        let count = operandsBeforeCommand.map { max(0, scanned.operands.count - $0) }
        let texts =
            scanned.operands.dropLast(count ?? 0)
            + scanned.options.compactMap { found in
                options[found.index].isPath ? nil : found.value
            }
        // Valid text may itself contain the code points that stand for bytes.
        let isText = words.allSatisfy { String(validating: $0, as: UTF8.self) != nil }
        if !isText, texts.contains(where: \.hasForeignBytes) {
            throw .usage(
                "an argument is not valid UTF-8: use UTF-8, except for the value of an option that is a path"
            )
        }
        self.init(scanned, options: options, command: command, directory: directory)
        if let count { commandLine = words.suffix(count) }
    }

    /// Whether an option was given.
    package func has(_ option: String) -> Bool {
        values[option] != nil
    }

    /// An option's value; the last one if it was given several times.
    package func value(_ option: String) -> String? {
        values[option]?.last
    }

    /// All values of an option, in order.
    package func all(_ option: String) -> [String] {
        values[option] ?? []
    }

    /// Returns an option's value, parsed by `parse`, whose errors get the option's name as a prefix.
    package func value<Value>(_ option: String, as parse: (String) throws(Failure) -> Value) throws(Failure)
        -> Value?
    {
        guard let text = value(option) else { return nil }
        do throws(Failure) {
            return try parse(text)
        } catch {
            throw Failure(error.status, "\(command): --\(option): \(error.message)")
        }
    }

    /// Returns a whole number in `range`.
    package func count(_ option: String, in range: ClosedRange<Int>) throws(Failure) -> Int? {
        try value(option) { (text) throws(Failure) in
            let count = try Quantity.count(text)
            if range.contains(count) { return count }
            throw .usage("\(text) is out of range: give \(range.lowerBound) to \(range.upperBound)")
        }
    }

    /// Returns the arguments with the first operand moved to `option`, if that option was given without a value.
    ///
    /// The operand is moved only if it is the only one. If the operands contain another program's command line, it is
    /// moved only if `isValue` accepts it and the `--` of the command line follows it.
    ///
    /// - Parameter isValue: Distinguishes values from program names; nil if the operands are not a command line.
    func takingOperand(for option: String, beforeCommand isValue: ((String) -> Bool)? = nil) -> Arguments {
        guard values[option]?.last == "", let first = operands.first else { return self }
        // The `--` is removed together with the value.
        let count = isValue == nil ? 1 : 2
        if let isValue {
            guard operands.count > 2, operands[1] == "--", isValue(first) else { return self }
        } else if operands.count > 1 {
            return self
        }
        var arguments = self
        arguments.values[option] = [first]
        arguments.operands.removeFirst(count)
        arguments.commandLine.removeFirst(count)
        return arguments
    }

    /// Throws if the number of operands is wrong.
    func expectOperands(_ range: ClosedRange<Int>, _ usage: String) throws(Failure) {
        guard range.contains(operands.count) else {
            let problem = operands.count < range.lowerBound ? "missing operand" : "too many operands"
            throw Failure.usage("\(command): \(problem): give \(usage); see `diskcache \(command) --help`")
        }
    }

    /// Prints a result, as JSON if requested.
    ///
    /// - Parameter words: Words that are colored on a terminal if a line begins with them.
    package func print(
        _ text: @autoclosure () throws -> String,
        painting words: [(word: String, colour: Colour)] = [],
        json: @autoclosure () throws -> any Encodable
    ) throws {
        if has("json") { return try Output.print(JSON.line(json())) }
        try Output.print(text(), painting: words)
    }

    /// Returns the directory: `--dir`, else `$DISKCACHE_DIR`, else `${XDG_CACHE_HOME:-~/.cache}/diskcache`.
    func directory() throws(Failure) -> String {
        if let named = try namedDirectory() { return named }
        // The XDG specification requires that a relative path is ignored.
        if let base = Self.pathInEnvironment("XDG_CACHE_HOME"), base.hasPrefix("/") {
            return base + "/diskcache"
        }
        guard let home = Self.pathInEnvironment("HOME"), !home.isEmpty else {
            throw Failure.usage("no cache directory: neither $HOME nor $DISKCACHE_DIR is set: give --dir DIR")
        }
        guard home.hasPrefix("/") else {
            throw .usage("no cache directory: $HOME is \(home), a relative path: give --dir DIR")
        }
        return home + "/.cache/diskcache"
    }

    /// Returns the directory chosen by the user; nil for the default one.
    func namedDirectory() throws(Failure) -> String? {
        if let given = value("dir") ?? globalDirectory {
            if given.isEmpty { throw Failure.usage("--dir is empty: give a directory") }
            return Self.trimmed(given)
        }
        if let given = Self.pathInEnvironment("DISKCACHE_DIR") {
            // An empty value does not count as unset: a user who set the variable does not want the default cache.
            if given.isEmpty { throw .usage("$DISKCACHE_DIR is empty: unset it, or give --dir DIR") }
            return Self.trimmed(given)
        }
        return nil
    }

    /// Returns the path without trailing slashes, for the messages; the root keeps its slash.
    private static func trimmed(_ path: String) -> String {
        String(path.prefix(through: path.lastIndex { $0 != "/" } ?? path.startIndex))
    }

    /// Returns the path in an environment variable; nil if it is not set.
    private static func pathInEnvironment(_ name: String) -> String? {
        CurrentProcess.environmentBytes(name).map { String(pathBytes: $0) }
    }

    /// Returns an environment variable; nil if it is not set.
    static func environment(_ name: String) throws(Failure) -> String? {
        guard let bytes = CurrentProcess.environmentBytes(name) else { return nil }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw .usage("$\(name) is not valid UTF-8: correct or unset it")
        }
        return text
    }

    /// Returns the configuration, including `$DISKCACHE_METADATA`.
    ///
    /// The variable is for tests, and for directories that are copied with tools that lose extended attributes.
    package func configuration() throws(Failure) -> CacheConfiguration {
        var configuration = CacheConfiguration()
        // A command reads each value once, so a memory tier would not help.
        configuration.memory = .none
        // A command only does its own work, and leaves maintenance to other processes.
        configuration.janitor.isEnabled = false
        configuration.janitor.joinsSession = false
        switch try Self.environment("DISKCACHE_METADATA") {
        case nil, "", "automatic": break
        case "sidecar": configuration.metadataForm = .sidecar
        case let other?:
            throw Failure(
                .configuration,
                "invalid DISKCACHE_METADATA '\(other)': it must be automatic or sidecar"
            )
        }
        return configuration
    }

    /// Returns the full key of the first operand: the scope followed by the operand.
    func key() throws(Failure) -> String {
        try key(operands.first ?? "")
    }

    /// Returns the full key of the user's `name`: the scope followed by the name.
    package func key(_ name: String) throws(Failure) -> String {
        try check(name)
        return try scope() + name
    }

    /// Returns the prefix of every key: `--scope`, else `$DISKCACHE_SCOPE`, else the empty string.
    func scope() throws(Failure) -> String {
        if let given = value("scope") { return given }
        return try Self.environment("DISKCACHE_SCOPE") ?? ""
    }

    /// Throws if the key is empty, before anything is opened or created.
    func check(_ key: String) throws(Failure) {
        if key.isEmpty { throw .usage("\(command): the key is empty: give a key") }
    }

    /// Returns the given tags, in order and without duplicates.
    package func tags() throws(Failure) -> [String] {
        try texts("tag", "tag")
    }

    /// Returns all values of an option, in order and without duplicates; an empty value is an error.
    ///
    /// - Parameter noun: The kind of value, for the error message.
    func texts(_ option: String, _ noun: String) throws(Failure) -> [String] {
        var texts: [String] = []
        for text in all(option) where !texts.contains(text) {
            if text.isEmpty { throw .usage("\(command): --\(option): the \(noun) is empty: give a \(noun)") }
            texts.append(text)
        }
        return texts
    }

    /// Opens the cache, and creates it if it is missing.
    ///
    /// - Parameter sharing: Whether to share values with other machines if `config.json` says so.
    package func openCache(sharing: Bool = false) throws -> SharedCache {
        try open(directory(), configuration(), sharing: sharing)
    }

    /// Opens the cache at a path, and creates it if it is missing.
    func open(
        _ path: String,
        _ configuration: CacheConfiguration,
        sharing: Bool
    ) throws -> SharedCache {
        if sharing, let network { return try network.open(path, configuration) }
        return try SharedCache(at: path, configuration: configuration)
    }

    /// Opens the cache; returns nil, and creates nothing, if the directory is missing or empty.
    func openExistingCache(sharing: Bool = false) throws -> SharedCache? {
        let path = try directory()
        let configuration = try configuration()
        do throws(Errno) {
            if try Directory(opening: path).names().isEmpty { return nil }
        } catch {
            if error == .noEntry { return nil }
            // The attempt to open the cache reports other errors.
        }
        return try open(path, configuration, sharing: sharing)
    }

    /// Opens the cache; throws if it does not exist.
    package func requireCache(sharing: Bool = false) throws -> SharedCache {
        if let cache = try openExistingCache(sharing: sharing) { return cache }
        throw Failure(.configuration, "there is no cache at \(try directory()): `diskcache put` creates one")
    }
}

extension ScannedOptions {
    /// Scans a command line.
    ///
    /// Options may precede or follow the operands, but options within another program's command line belong to that
    /// program.
    ///
    /// - Parameter operandsBeforeCommand: The number of operands before another program's command line; nil if there is
    ///   no such command line.
    init(_ words: [String], _ options: [Option], operandsBeforeCommand: Int?) throws(OptionError) {
        let stops = operandsBeforeCommand != nil
        self = try OptionScanner.scan(words, options.map(\.specification), stopsAtOperand: stops)
        guard let count = operandsBeforeCommand, count > 0, let first = operands.first else { return }
        let rest = try Self(Array(operands.dropFirst()), options, operandsBeforeCommand: count - 1)
        operands = [first] + rest.operands
        self.options += rest.options
    }
}
