// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials

extension KeyedCache {
    /// Returns a function whose results are cached: each is computed once for equal parameters, across all tasks, threads
    /// and processes.
    ///
    /// ```swift
    /// let render = cache.memoized("render 2", of: Chart.self) { chart in try await draw(chart) }
    /// let image = try await render(Chart(width: 640, points: points))
    /// ```
    ///
    /// The key of a result is `name`, a slash, and the SHA-256 of the parameters as JSON with sorted keys. So two functions
    /// need different names, and a function whose results have changed needs a new name. Results for parameters that
    /// contain sets, or dictionaries whose keys are not strings, are not found again, because the order of their elements
    /// differs between processes.
    ///
    /// Otherwise like `value(forKey:orCompute:)`: failures of the cache are never thrown.
    ///
    /// - Parameters:
    ///   - name: the name of the function, which begins the keys of its results: they can be removed by this prefix.
    ///   - type: the type of its parameters.
    ///   - options: the options for storing results; nil for the default options of this cache or view.
    ///   - reading: which results are acceptable, and how long to wait.
    ///   - function: computes a result, in the caller's task or, for a background refresh, in a separate task.
    /// - Returns: a function that throws the errors of `function`, and ``CacheError`` with the code `encoding` if the
    ///   parameters cannot be encoded.
    public func memoized<Parameters: Encodable & Sendable>(
        _ name: String,
        of type: Parameters.Type = Parameters.self,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        _ function: @escaping @Sendable (Parameters) async throws -> Value
    ) -> @Sendable (Parameters) async throws -> Value {
        let results = namespace(name + "/", options: options)
        return { parameters in
            let key = try memoizedKey(of: parameters)
            return try await results.value(forKey: key, reading: reading) { () async throws -> Value in
                try await function(parameters)
            }
        }
    }
}

/// Returns the key of a result, which is the same for equal parameters in all processes.
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
