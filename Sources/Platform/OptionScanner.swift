// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// An option of a command line, as getopt_long(3) knows it.
package struct OptionSpecification: Sendable {
    /// Whether a value follows.
    package enum Argument: Int32, Sendable {
        case none = 0
        case required = 1
        /// Only as `--name=value`.
        case optional = 2
    }

    /// The long name, without dashes.
    package let name: String
    /// The one-letter form, if it has one.
    package let letter: Character?
    package let argument: Argument

    package init(name: String, letter: Character?, argument: Argument) {
        self.name = name
        self.letter = letter
        self.argument = argument
    }
}

/// What was found on a command line.
package struct ScannedOptions: Sendable, Equatable {
    /// Each option by its place in the specifications, with its value, in the order given.
    package var options: [Found] = []
    /// Everything that is no option, in order; all after `--`.
    package var operands: [String] = []

    /// An option that was given.
    package struct Found: Sendable, Equatable {
        package let index: Int
        package let value: String?
    }
}

/// Why a command line makes no sense.
package enum OptionError: Error, Sendable, Equatable {
    /// No option has this name, or several begin with it.
    case unknown(String)
    /// The option wants a value, and there is none.
    case missingValue(String)
    /// The option takes no value.
    case unexpectedValue(String)
}

/// Command lines taken apart by getopt_long(3): bundled letters, `--name=value`, unambiguous beginnings of
/// long names, `--`.
package enum OptionScanner {
    /// Scans `arguments` (without the program's name).
    ///
    /// Not for use by two threads at once: getopt keeps its state in globals.
    ///
    /// - Parameter stopsAtOperand: whether the first operand ends the options, as where the rest is
    ///   another command line.
    package static func scan(
        _ arguments: [String],
        _ specifications: [OptionSpecification],
        stopsAtOperand: Bool
    ) throws(OptionError) -> ScannedOptions {
        var vector = unsafe (["diskcache"] + arguments).map { unsafe strdup($0) }
        let names = unsafe specifications.map { unsafe strdup($0.name) }
        unsafe vector.append(nil)
        defer {
            unsafe (vector + names).forEach { unsafe free($0) }
        }
        var table = unsafe specifications.enumerated().map { index, option in
            unsafe cplatform_option(
                name: names[index],
                argument: option.argument.rawValue,
                value: firstValue + CInt(index)
            )
        }
        unsafe table.append(cplatform_option(name: nil, argument: 0, value: 0))
        return try unsafe scan(vector, table, specifications, stopsAtOperand)
    }

    /// Above all characters, so that long options can't be mistaken for letters.
    private static let firstValue: CInt = 1000

    @unsafe
    private static func scan(
        _ vector: [UnsafeMutablePointer<CChar>?],
        _ table: [cplatform_option],
        _ specifications: [OptionSpecification],
        _ stopsAtOperand: Bool
    ) throws(OptionError) -> ScannedOptions {
        // getopt reorders the vector, so that the operands come last.
        var vector = unsafe vector
        let count = unsafe CInt(vector.count - 1)
        let letters = Self.letters(specifications, stopsAtOperand)
        var result = ScannedOptions()
        cplatform_getopt_reset()
        while true {
            let value = unsafe vector.withUnsafeMutableBufferPointer { buffer in
                unsafe cplatform_getopt_long(count, buffer.baseAddress, letters, table)
            }
            if value == -1 { break }
            guard let index = Self.index(of: value, specifications) else {
                let place = Int(cplatform_getopt_index()) - 1
                let word = unsafe vector[place].map { unsafe String(cString: $0) } ?? ""
                throw Self.error(for: value, word, specifications)
            }
            let argument = unsafe cplatform_getopt_argument().map { unsafe String(cString: $0) }
            result.options.append(ScannedOptions.Found(index: index, value: argument))
        }
        for place in unsafe Int(cplatform_getopt_index())..<(vector.count - 1) {
            unsafe result.operands.append(vector[place].map { unsafe String(cString: $0) } ?? "")
        }
        return result
    }

    /// "+" ends the options at the first operand, ":" tells a missing value from an unknown option.
    private static func letters(
        _ specifications: [OptionSpecification],
        _ stopsAtOperand: Bool
    ) -> String {
        specifications.reduce(into: stopsAtOperand ? "+:" : ":") { letters, option in
            guard let letter = option.letter else { return }
            letters += "\(letter)" + String(repeating: ":", count: Int(option.argument.rawValue))
        }
    }

    private static func index(of value: CInt, _ specifications: [OptionSpecification]) -> Int? {
        if value >= firstValue { return Int(value - firstValue) }
        return specifications.firstIndex {
            $0.letter.flatMap(\.asciiValue).map(CInt.init) == value
        }
    }

    private static func error(
        for value: CInt,
        _ word: String,
        _ specifications: [OptionSpecification]
    ) -> OptionError {
        let offender = cplatform_getopt_offender()
        // With an unknown letter getopt may still be inside a bundle and name no word of its own.
        let letter =
            offender > 0 && offender < firstValue ? "-\(Character(UnicodeScalar(UInt8(offender))))" : nil
        let name =
            letter ?? Self.index(of: offender, specifications).map { "--\(specifications[$0].name)" } ?? word
        if value == CInt(UInt8(ascii: ":")) { return .missingValue(name) }
        if offender >= firstValue { return .unexpectedValue(name) }
        return .unknown(name)
    }
}
