// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// `diskcache verify`.
enum VerifyCommand: Command {
    static let name = "verify"
    static let summary = "read and hash every value, and check all metadata against the values"
    static let optionList = """
        --repair  delete corrupt values and entries, and entries whose value is gone
        -s, --sample PART  check only a random sample of the values: 1%, or a number such as 1000
        \(Option.json)
        """
    static let details = """
        Other processes can read and write meanwhile. Every get also detects damage, and treats it as a miss.
        verify prints each finding at once. Several threads read; they use about 27 bytes of memory per value
        (270 MB for 10 million), and 32 more for each value in a sample. With --sample, verify hashes the
        values of the sample, at least one; for the same share of the keys, it checks that the value exists
        and has the right length.

        JSON: objects, objectBytes (length), entries (what was checked), listedObjects, listedEntries (what
        exists), corruptObjects, corruptEntries, danglingEntries (names of files, the first 1000 of each),
        corruptObjectCount, corruptEntryCount, danglingEntryCount, unfinishedEntries (left by killed puts) and
        orphans (values without a key; omitted with --sample), both of which the next gc removes,
        futureEntries (stored by a clock that was ahead), metadataIsLost (whether so many entries are
        unfinished that this is a copy without extended attributes), unrecognised (files that are not part of
        the cache), unreadable (files that could not be read), repaired (number of deleted files), isClean.

        Exit status: 0 no damage; 65 something was corrupt, dangling, unreadable or lost, even if it was
        repaired; 64 usage; 73 not a directory, or --repair on a read-only file system; 77 permission;
        78 there is no cache.

        Examples:
          diskcache verify --repair
          diskcache verify --sample 1%
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        var options = VerifyOptions()
        options.repair = arguments.has("repair")
        options.sample = try arguments.value("sample", as: Quantity.sample)
        let cache = try arguments.requireCache()
        let isJSON = arguments.has("json")
        let report = try verify(cache, options, isJSON: isJSON)
        if isJSON { try Output.print(JSON.line(report)) }
        return report.isClean ? .done : .dataError
    }

    /// Verifies the cache, with progress on a terminal; prints each finding at once, and a summary at the end.
    ///
    /// - Parameter isJSON: Whether to print nothing here, because the caller prints the report as JSON.
    static func verify(_ cache: SharedCache, _ options: VerifyOptions, isJSON: Bool) throws -> VerifyReport {
        let failure = Locked<Errno?>(nil)
        let report = try ProgressLine.during { line in
            try cache.directory.verify(options) { finding in
                if isJSON { return }
                do throws(Errno) {
                    try line.print(words(finding), painting: colours)
                } catch {
                    // If the output can't be written, repairs continue, and the exit status reports the error.
                    failure.withLock { $0 = $0 ?? error }
                }
            } progress: {
                line.show($0)
            }
        }
        if let failure = failure.withLock({ $0 }) { throw failure }
        if !isJSON { try Output.print(text(report, options), painting: colours) }
        return report
    }

    /// The words at the beginning of lines with good or bad results, and their colors.
    private static let colours: [(word: String, colour: Colour)] = [
        ("corrupt value:", .red), ("corrupt entry:", .red), ("entry without its value:", .red),
        ("damaged:", .red), ("not sound:", .red), ("sound:", .green),
    ]

    private static func words(_ finding: VerifyReport.Finding) -> String {
        switch finding {
        case .corruptObject(let digest): "corrupt value: \(digest)"
        case .corruptEntry(let digest): "corrupt entry: \(digest)"
        case .danglingEntry(let digest): "entry without its value: \(digest)"
        }
    }

    /// Returns the summary, without the findings.
    static func text(_ report: VerifyReport, _ options: VerifyOptions) -> String {
        var text = report.unreadable.map { "can't be read: \($0.escaped)\n" }.joined()
        text += report.unrecognised.map { "not part of the cache: \($0.escaped)\n" }.joined()
        if report.metadataIsLost {
            text += """
                keys without their metadata: \(report.unfinishedEntries) of \(report.entries); it is in extended \
                attributes (user.dc), which cp keeps only with -a, rsync with -X, tar with --xattrs
                these keys can't be read: copy the directory again with extended attributes, or remove \
                them with `diskcache gc`

                """
        } else if report.unfinishedEntries > 0 {
            text += "unfinished keys, which gc removes: \(report.unfinishedEntries)\n"
        }
        if report.futureEntries > 0 {
            text +=
                "keys stored by a clock that was ahead, misses until that time: \(report.futureEntries)\n"
        }
        if let orphans = report.orphans, orphans > 0 {
            text +=
                report.unreadable.isEmpty
                ? "values without a key, which gc removes: \(orphans)\n"
                : "values without a readable key: \(orphans); gc keeps them until it can read all keys\n"
        }
        let read = read(report, isSample: options.sample != nil)
        if report.isClean { return text + "sound: \(read)\n" }
        let damaged = report.corruptObjectCount + report.corruptEntryCount + report.danglingEntryCount
        if damaged == 0, report.unreadable.isEmpty { return text + "not sound: \(read)\n" }
        text += "damaged: \(damaged), deleted: \(report.repaired); checked: \(read)\n"
        return options.repair || damaged == 0 ? text : text + "remove it with `diskcache verify --repair`\n"
    }

    /// Returns "12 keys, 10 values, 40.0 KiB"; for a sample, also its share.
    private static func read(_ report: VerifyReport, isSample: Bool) -> String {
        let read = Quantity.contents(keys: report.entries, values: report.objects, bytes: report.objectBytes)
        guard isSample else { return read }
        let share = Double(report.objects) / Double(max(1, report.listedObjects)) * 100
        let all = Quantity.count(report.listedObjects, "value")
        return "\(read): a sample of \(Quantity.tenths(share)) % of \(all)"
    }
}

extension Quantity {
    /// Parses a percentage, "1%" or "0.5%", or a number of values, "1000".
    static func sample(_ text: String) throws(Failure) -> VerifyOptions.Sample {
        if text.hasSuffix("%") {
            // An empty sample would never find damage.
            if let match = text.wholeMatch(of: /([0-9.]+)%/), let percent = Double(match.1),
                percent > 0, percent <= 100
            {
                return .percent(percent)
            }
            throw .usage("invalid percentage '\(text)': write it like 1% or 0.5%, above 0 and up to 100%")
        }
        let count = try count(text)
        guard count > 0 else { throw .usage("the sample must be at least 1: write it like 1000 or 1%") }
        return .count(count)
    }
}
