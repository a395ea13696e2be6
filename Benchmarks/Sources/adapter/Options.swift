// SPDX-License-Identifier: Apache-2.0

/// What a worker is asked to do: `OPERATION --name value …`, names and defaults as all adapters have them.
struct Options: Sendable {
    enum Operation: String, Sendable {
        case fill
        case gcFill = "gcfill"
        case getHit = "get_hit"
        case getMiss = "get_miss"
        case putNew = "put_new"
        case putOver = "put_over"
        case putMore = "put_more"
        case mixed
        case openFirst = "open_first"
        case gcScan = "gc_scan"
        case gc
        case list = "ls"
        case stampede
        case memoryHit = "memhit"
        /// Names the variants, for the driver.
        case variants
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let operation: Operation
    var directory = "data/x"
    var variant = Variant.memory
    var isSynced = false
    /// What `--sync` said, for the result.
    var sync = "default"
    var system = "ours"
    var workload = ""
    /// Bytes of a value.
    var size = 4096
    /// Keys.
    var count = 20_000
    var processes = 1
    /// Which of the processes this is, from 0.
    var process = 0
    var threads = 1
    /// How long to read.
    var seconds = 1.0
    /// How long to write at most.
    var cap = 30.0
    var seed: UInt64 = 1
    /// The share of the entries that a collection keeps.
    var keep = 0.5
    var computeMilliseconds = 200
    /// How long reads go on at most before they are timed.
    var warmUpMilliseconds: UInt64 = 300
    var hasHandshake = false

    init(_ arguments: some Collection<String>) throws(Failure) {
        guard let name = arguments.first, let operation = Operation(rawValue: name) else {
            throw Failure(description: "no operation \(arguments.first ?? ""): see the protocol")
        }
        self.operation = operation
        var rest = arguments.dropFirst()
        while let name = rest.popFirst() {
            if name == "--handshake" {
                hasHandshake = true
                continue
            }
            guard let value = rest.popFirst() else { throw Failure(description: "\(name) needs a value") }
            try set(name, value)
        }
        guard size >= Values.stampSize, count > 0, processes > 0, threads > 0 else {
            throw Failure(description: "--size is \(Values.stampSize) at least, --n, --procs, --threads 1")
        }
    }

    private mutating func set(_ name: String, _ value: String) throws(Failure) {
        switch name {
        case "--dir": directory = value
        case "--system": system = value
        case "--workload": workload = value
        case "--variant": variant = try Variant(name: value)
        case "--sync":
            sync = value
            isSynced = value == "on"
        case "--size": size = try Self.number(name, value)
        case "--n": count = try Self.number(name, value)
        case "--procs": processes = try Self.number(name, value)
        case "--proc": process = try Self.number(name, value)
        case "--threads": threads = try Self.number(name, value)
        case "--secs": seconds = try Self.number(name, value)
        case "--cap": cap = try Self.number(name, value)
        case "--seed": seed = try Self.number(name, value)
        case "--keep": keep = try Self.number(name, value)
        case "--compute-ms": computeMilliseconds = try Self.number(name, value)
        case "--warm-ms": warmUpMilliseconds = try Self.number(name, value)
        default: throw Failure(description: "there is no option \(name)")
        }
    }

    private static func number<Number: LosslessStringConvertible>(
        _ name: String,
        _ value: String
    ) throws(Failure) -> Number {
        guard let number = Number(value) else {
            throw Failure(description: "\(name) \(value): it must be a number")
        }
        return number
    }
}
