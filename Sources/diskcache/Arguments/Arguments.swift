// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// A subcommand's options and operands.
struct Arguments {
    private(set) var operands: [String]
    private var values: [String: [String]]
    /// The operands as bytes, where they are the command line of another program.
    var commandLine: [[UInt8]]
    /// The command's name, with which its messages begin.
    let command: String
    private let globalDirectory: String?

    init(_ scanned: ScannedOptions, options: [Option], command: String, directory: String?) {
        operands = scanned.operands
        commandLine = scanned.operands.map { Array($0.utf8) }
        values = Dictionary(
            grouping: scanned.options,
            by: { options[$0.index].specification.name }
        ).mapValues { found in found.map { $0.value ?? "" } }
        self.command = command
        globalDirectory = directory
    }

    /// Takes a command line apart.
    ///
    /// - Parameters:
    ///   - command: empty for the words before the command's name.
    ///   - stopsAtOperand: whether the first operand begins another command line.
    init(
        _ words: [[UInt8]],
        _ options: [Option],
        command: String,
        directory: String?,
        stopsAtOperand: Bool
    ) throws(Failure) {
        let scanned: ScannedOptions
        do throws(OptionError) {
            scanned = try OptionScanner.scan(
                words.map { String(decoding: $0, as: UTF8.self) },
                options.map(\.specification),
                stopsAtOperand: stopsAtOperand
            )
        } catch {
            let (prefix, name) = command.isEmpty ? ("", "") : ("\(command): ", " \(command)")
            throw .usage("\(prefix)\(error.words(options)): see `diskcache\(name) --help`")
        }
        // Another command line is that command's affair, which may take any bytes.
        try Self.checkText(stopsAtOperand ? words.dropLast(scanned.operands.count) : words[...])
        self.init(scanned, options: options, command: command, directory: directory)
        if stopsAtOperand { commandLine = words.suffix(scanned.operands.count) }
    }

    /// Whether an option was given.
    func has(_ option: String) -> Bool {
        values[option] != nil
    }

    /// An option's value; where it was given several times, the last.
    func value(_ option: String) -> String? {
        values[option]?.last
    }

    /// All values of an option, in order.
    func all(_ option: String) -> [String] {
        values[option] ?? []
    }

    /// A value that `parse` understands; it says what is wrong with any other.
    func value<Value>(_ option: String, as parse: (String) throws(Failure) -> Value) throws(Failure) -> Value?
    {
        guard let text = value(option) else { return nil }
        do throws(Failure) {
            return try parse(text)
        } catch {
            throw Failure.usage("\(command): --\(option): \(error.message)")
        }
    }

    /// A whole number in `range`.
    func count(_ option: String, in range: ClosedRange<Int>) throws(Failure) -> Int? {
        try value(option) { (text) throws(Failure) in
            let count = try Quantity.count(text)
            if range.contains(count) { return count }
            throw .usage(
                "\(text): it must be at least \(range.lowerBound) and at most \(range.upperBound)"
            )
        }
    }

    /// Refuses words that are not valid UTF-8: two different ones could become the same key.
    static func checkText(_ words: some Sequence<[UInt8]>) throws(Failure) {
        if words.contains(where: { String(validating: $0, as: UTF8.self) == nil }) {
            throw .usage("an argument is not valid UTF-8: keys and paths must be")
        }
    }

    /// The same with the first operand as the value of `option`, if that was given without one.
    ///
    /// It must be the only operand. If the operands are another program's command line, it must stand before the `--`
    /// of that, and be a value.
    ///
    /// - Parameter isValue: tells values from the names of programs; nil if the operands are no command line.
    func takingOperand(for option: String, beforeCommand isValue: ((String) -> Bool)? = nil) -> Arguments {
        guard values[option]?.last == "", let first = operands.first else { return self }
        // It goes together with the `--`.
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

    /// Refuses a wrong number of operands.
    func expectOperands(_ range: ClosedRange<Int>, _ usage: String) throws(Failure) {
        guard range.contains(operands.count) else {
            let problem = operands.count < range.lowerBound ? "missing operand" : "too many operands"
            throw Failure.usage("\(command): \(problem): give \(usage); see `diskcache \(command) --help`")
        }
    }

    /// Prints a result, as JSON where that was asked for.
    func print(
        _ text: @autoclosure () throws -> String,
        json: @autoclosure () throws -> any Encodable
    ) throws {
        try Output.print(has("json") ? JSON.line(json()) : text())
    }

    /// The directory: `--dir`, else `$DISKCACHE_DIR`, else `${XDG_CACHE_HOME:-~/.cache}/diskcache`.
    func directory() throws(Failure) -> String {
        if let named = try namedDirectory() { return named }
        // The specification wants relative paths in XDG_CACHE_HOME ignored.
        if let base = try Self.environment("XDG_CACHE_HOME"), base.hasPrefix("/") {
            return base + "/diskcache"
        }
        guard let home = try Self.environment("HOME"), !home.isEmpty else {
            throw Failure.usage("no cache directory: neither $HOME nor $DISKCACHE_DIR is set: give --dir DIR")
        }
        guard home.hasPrefix("/") else {
            throw .usage("no cache directory: $HOME is \(home), a relative path: give --dir DIR")
        }
        return home + "/.cache/diskcache"
    }

    /// The directory that the user chose; nil where it is the default.
    func namedDirectory() throws(Failure) -> String? {
        if let given = value("dir") ?? globalDirectory {
            if given.isEmpty { throw Failure.usage("the cache directory has an empty name: give --dir DIR") }
            return Self.trimmed(given)
        }
        if let given = try Self.environment("DISKCACHE_DIR") {
            // Not as if it were unset: whoever set it did not mean the cache that all programs share.
            if given.isEmpty {
                throw .usage("$DISKCACHE_DIR is empty: unset it, or give --dir DIR")
            }
            return Self.trimmed(given)
        }
        return nil
    }

    /// Without slashes at the end, as paths below it are shown; the root keeps its own.
    private static func trimmed(_ path: String) -> String {
        String(path.prefix(through: path.lastIndex { $0 != "/" } ?? path.startIndex))
    }

    /// A variable of the environment; nil where it is not set.
    static func environment(_ name: String) throws(Failure) -> String? {
        do throws(InvalidText) {
            return try CurrentProcess.environment(name)
        } catch {
            throw .usage("$\(name) is not UTF-8: correct or unset it")
        }
    }

    /// The configuration that the environment asks for: `$DISKCACHE_METADATA`, for tests and for
    /// directories that are to be copied by tools that lose extended attributes.
    func configuration() throws(Failure) -> CacheConfiguration {
        var configuration = CacheConfiguration()
        // A command looks at each value once.
        configuration.memory = .none
        // A command does what it is asked to do, and no housekeeping.
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

    /// The key that the command is about: its first operand.
    func key() throws(Failure) -> String {
        let key = operands.first ?? ""
        try check(key)
        return key
    }

    /// Refuses what can't be a key before anything is opened or made for it.
    func check(_ key: String) throws(Failure) {
        if key.isEmpty { throw .usage("\(command): the key is empty: give a key") }
    }

    /// The tags given, each once, in order.
    func tags() throws(Failure) -> [String] {
        var tags: [String] = []
        for tag in all("tag") where !tags.contains(tag) {
            if tag.isEmpty { throw .usage("\(command): --tag: the tag is empty: give a word") }
            tags.append(tag)
        }
        return tags
    }

    /// The cache that the command is about, made where it is missing.
    func openCache() throws -> SharedCache {
        try SharedCache(at: directory(), configuration: configuration())
    }

    /// The cache that the command is about, nil where there is none: nothing, or an empty directory, which
    /// then stays as it is.
    func openExistingCache() throws -> SharedCache? {
        let path = try directory()
        let configuration = try configuration()
        do throws(Errno) {
            if try Directory(opening: path).names().isEmpty { return nil }
        } catch {
            if error == .noEntry { return nil }
            // Opening it as a cache reports anything else.
        }
        return try SharedCache(at: path, configuration: configuration)
    }

    /// The cache that the command is about, which must exist.
    func requireCache() throws -> SharedCache {
        if let cache = try openExistingCache() { return cache }
        throw Failure(
            .configuration,
            "there is no cache at \(try directory()): `diskcache put` creates one"
        )
    }
}
