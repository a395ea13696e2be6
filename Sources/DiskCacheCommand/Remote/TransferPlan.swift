// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// The request of a command line of `push` or `pull`.
struct TransferPlan {
    /// The named keys, including the scope.
    let keys: [String]
    let selections: [KeySelection]

    init(_ arguments: Arguments) throws(Failure) {
        selections = try SelectionOptions.selections(arguments)
        var keys: [String] = []
        for operand in arguments.operands { keys.append(try arguments.key(operand)) }
        self.keys = keys
    }

    var isEmpty: Bool { keys.isEmpty && selections.isEmpty }

    /// Returns the stores that the cache shares; throws if none are configured.
    ///
    /// - Parameter limit: The time to wait for a response.
    static func stores(_ arguments: Arguments, limit: Duration) throws -> any Stores {
        // Only an existing cache is opened; none is created.
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
