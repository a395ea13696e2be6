// SPDX-License-Identifier: Apache-2.0

import DiskCache
import DiskCacheCommand

/// What a command line of `push` or `pull` requests.
struct TransferPlan {
    /// The full keys that were given, including the scope.
    let keys: [String]
    let selections: [KeySelection]

    init(_ arguments: Arguments) throws(Failure) {
        selections = try SelectionOptions.selections(arguments)
        var keys: [String] = []
        for operand in arguments.operands { keys.append(try arguments.key(operand)) }
        self.keys = keys
    }

    var isEmpty: Bool { keys.isEmpty && selections.isEmpty }
}
