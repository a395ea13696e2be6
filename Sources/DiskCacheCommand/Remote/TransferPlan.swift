// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// What a command line of `push` or `pull` asks for.
struct TransferPlan {
    /// Those that are named, behind the scope.
    let keys: [String]
    let selections: [KeySelection]

    init(_ arguments: Arguments) throws(Failure) {
        selections = try SelectionOptions.selections(arguments)
        var keys: [String] = []
        for operand in arguments.operands { keys.append(try arguments.key(operand)) }
        self.keys = keys
    }

    var isEmpty: Bool { keys.isEmpty && selections.isEmpty }

    /// The stores that the cache shares, which must be named.
    ///
    /// - Parameter limit: how long to wait for an answer.
    static func stores(_ arguments: Arguments, limit: Duration) throws -> any Stores {
        // What is there is to be opened, and nothing made.
        let path = try arguments.requireCache().path
        if let network = arguments.network,
            let stores = try network.stores(of: path, arguments.configuration(), limit: limit)
        {
            return stores
        }
        let advice = "name one with `diskcache config set remote.servers URL`"
        let problem = "the config.json of \(path) names no store"
        throw Failure(.configuration, "\(arguments.command): \(problem): \(advice)")
    }
}
