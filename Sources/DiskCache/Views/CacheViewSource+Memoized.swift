// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials

extension CacheViewSource {
    /// A function whose results are kept: computed once for each parameters, for all tasks, threads and processes.
    ///
    /// ```swift
    /// let render = cache.memoized("render 2", of: Chart.self) { chart in try await draw(chart) }
    /// let image = try await render(Chart(width: 640, points: points))
    /// ```
    ///
    /// A result has the key `name`, a slash, and the SHA-256 of the parameters as JSON with sorted keys. So two functions
    /// need two names, and one that gives other results than it did a name of its own. Parameters with sets or
    /// dictionaries whose keys are no strings are not found again: their order differs from one process to the next.
    ///
    /// Like `value(forKey:orCompute:)` otherwise: failures of the cache are never thrown.
    ///
    /// - Parameters:
    ///   - name: the name of the function: with it, or with its prefix, its results can be removed.
    ///   - type: the type of its parameters.
    ///   - options: how results are stored; nil: as in what this is made from.
    ///   - reading: how old a result may be, and how long to wait.
    ///   - function: makes a result; in the caller's task or, for a refresh in the background, in a task of its own.
    /// - Returns: a function that throws what `function` throws, and ``CacheError`` with the code `encoding` if the
    ///   parameters can't be encoded.
    public func memoized<Parameters: Encodable & Sendable>(
        _ name: String,
        of type: Parameters.Type = Parameters.self,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        _ function: @escaping @Sendable (Parameters) async throws -> Codec.Value
    ) -> @Sendable (Parameters) async throws -> Codec.Value {
        let results = namespace(name + "/", options: options)
        return { parameters in
            let key = try memoizedKey(of: parameters)
            return try await results.value(forKey: key, reading: reading) { () async throws -> Codec.Value in
                try await function(parameters)
            }
        }
    }
}

/// The same for equal parameters, in all processes.
private func memoizedKey(of parameters: some Encodable) throws(CacheError) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    do {
        return Digest(of: try encoder.encode(parameters)).description
    } catch {
        throw CacheError(
            .encoding,
            "make a key of parameters: \(error): give some that can be written as JSON"
        )
    }
}
