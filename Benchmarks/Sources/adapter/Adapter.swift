// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The library behind the adapter protocol of the benchmark, which every peer speaks (see Benchmarks/README.md).
///
/// One process is one worker: it prepares, says READY, waits for a line, works, and prints one line of JSON.
@main
struct Adapter {
    static func main() {
        do {
            let options = try Options(CommandLine.arguments.dropFirst())
            try run(options)
        } catch {
            complain("adapter: \(error)")
            exit(1)
        }
    }

    private static func run(_ options: Options) throws {
        switch options.operation {
        case .fill: try Fill(options).run()
        case .gcFill: try Fill(options).runWithAccessTimes()
        case .getHit, .getMiss, .putNew, .putOver, .putMore, .mixed: try Crew(options).run()
        case .openFirst: try openFirst(options)
        case .gcScan, .gc, .list: try maintain(options)
        case .stampede: try stampede(options)
        case .memoryHit: try MemoryHits(options).run()
        case .variants: for variant in Variant.allCases { print(variant.rawValue) }
        }
    }
}

/// Writes a line to standard error.
func complain(_ message: String) {
    var line = message + "\n"
    line.withUTF8 { bytes in
        // There is nobody to tell that this could not be told.
        _ = unsafe write(STDERR_FILENO, bytes.baseAddress, bytes.count)
    }
}
