// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// An option of a command line, as defined for getopt_long(3).
package struct OptionSpecification: Sendable {
    /// Whether the option takes a value.
    package enum Argument: Int32, Sendable {
        case none = 0
        case required = 1
        /// A value is accepted only in the same word: `--name=value`, or `-nvalue` after a letter.
        case optional = 2
    }

    /// The long name, without dashes.
    package let name: String
    /// The one-letter form, if any.
    package let letter: Character?
    package let argument: Argument

    package init(name: String, letter: Character?, argument: Argument) {
        self.name = name
        self.letter = letter
        self.argument = argument
    }
}

/// The options and operands found on a command line.
package struct ScannedOptions: Sendable, Equatable {
    /// The options in the order given, each with its index in the specifications and its value.
    package var options: [Found] = []
    /// The words that are not options, in order, including all after `--`.
    package var operands: [String] = []

    /// An option that was given.
    package struct Found: Sendable, Equatable {
        package let index: Int
        package let value: String?
    }
}

/// An error in a command line.
package enum OptionError: Error, Sendable, Equatable {
    /// No option has this name, or several options begin with it.
    case unknown(String)
    /// The option requires a value, but has none.
    case missingValue(String)
    /// The option takes no value.
    case unexpectedValue(String)
}

/// A parser of command lines that uses getopt_long(3): bundled letters, `--name=value`, unambiguous prefixes of long names,
/// `--`.
package enum OptionScanner {
    /// Scans `arguments` (without the program's name).
    ///
    /// Concurrent calls wait for each other, because getopt keeps its state in globals.
    ///
    /// - Parameter stopsAtOperand: Whether the first operand ends the options, which is needed if the rest is another
    ///   command line.
    package static func scan(
        _ arguments: [String],
        _ specifications: [OptionSpecification],
        stopsAtOperand: Bool
    ) throws(OptionError) -> ScannedOptions {
        // getopt reorders the words so that the operands come last.
        let words = CStringList((["diskcache"] + arguments).map { Array($0.utf8) })
        let names = CStringList(specifications.map { Array($0.name.utf8) })
        defer { withExtendedLifetime(names) {} }
        let table = unsafe (0...specifications.count).map { index in
            unsafe cplatform_option(
                name: names.base[index],
                argument: index < names.count ? specifications[index].argument.rawValue : 0,
                value: firstValue + CInt(index)
            )
        }
        let letters = Self.letters(specifications, stopsAtOperand)
        return try turn.withLock { (_) throws(OptionError) in
            var result = ScannedOptions()
            var found = unsafe cplatform_found()
            while true {
                let isFirst = unsafe found.next == 0
                unsafe found = cplatform_getopt_long(CInt(words.count), words.base, letters, table, isFirst)
                if unsafe found.value == -1 { break }
                guard let index = unsafe Self.index(of: found.value, specifications) else {
                    throw unsafe Self.error(for: found, words[Int(found.next) - 1], specifications)
                }
                let argument = unsafe found.argument.map { unsafe String(cString: $0) }
                result.options.append(ScannedOptions.Found(index: index, value: argument))
            }
            result.operands = unsafe (Int(found.next)..<words.count).map { words[$0] }
            return result
        }
    }

    private static let turn = Locked(())

    /// Greater than all letters, so that long options can't be confused with letters.
    private static let firstValue: CInt = 1000

    /// Returns getopt's string of letters; "+" ends the options at the first operand, ":" distinguishes a missing value from
    /// an unknown option.
    private static func letters(_ specifications: [OptionSpecification], _ stopsAtOperand: Bool) -> String {
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
        for found: cplatform_found,
        _ word: String,
        _ specifications: [OptionSpecification]
    ) -> OptionError {
        let offender = unsafe found.offender
        // At an unknown letter, getopt may still be inside a bundle, so that its index does not tell the word.
        let letter =
            offender > 0 && offender < firstValue ? "-\(Character(UnicodeScalar(UInt8(offender))))" : nil
        let name =
            letter ?? Self.index(of: offender, specifications).map { "--\(specifications[$0].name)" } ?? word
        if unsafe found.value == CInt(UInt8(ascii: ":")) { return .missingValue(name) }
        return offender >= firstValue ? .unexpectedValue(name) : .unknown(name)
    }
}
