// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

// Most values in tests are text.

extension SharedCache {
    /// Stores a string's UTF-8 bytes.
    package func put(_ text: String, forKey key: String, options: PutOptions = PutOptions())
        throws(CacheError)
    {
        try put(Data(text.utf8), forKey: key, options: options)
    }

    /// Stores a string's UTF-8 bytes without blocking the thread.
    package func put(
        _ text: String,
        forKey key: String,
        options: PutOptions = PutOptions()
    ) async throws(CacheError) {
        try await put(Data(text.utf8), forKey: key, options: options)
    }
}
