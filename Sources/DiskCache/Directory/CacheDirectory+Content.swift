// SPDX-License-Identifier: Apache-2.0

public import CacheStore
public import FoundationEssentials

extension CacheDirectory {
    /// Stores content under its own digest, and returns the digest.
    ///
    /// `data(for:)` finds the content until it has expired and a collection has removed it. It is a value like any other,
    /// with the digest's hexadecimal digits as its key. It is on disk when this call returns, even with
    /// ``CacheConfiguration/Writing/behind`` and ``CacheConfiguration/Keeping/memoryOnly``.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func store(_ data: Data, expires: Expiration? = nil) throws(CacheError) -> Digest {
        let digest = Digest(of: data)
        var options = PutOptions(expires: expires, writing: .through)
        if cache.configuration.memory.keeps == .memoryOnly { options.keeps = .memoryAndDisk }
        try cache.put(data, forKey: digest.description, options: options)
        return digest
    }

    /// Returns the content with this digest, verified against the digest; nil if it is missing or damaged.
    ///
    /// Does not count as an access of any key. If damage has extended a file by large holes, it is read to its end, however
    /// long it is, unless the content was stored under its digest (``store(_:expires:)``).
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func data(for digest: Digest) throws(CacheError) -> Data? {
        try cache.core.checkOpen()
        // A put under this digest may be waiting to be published.
        cache.writeBehind.settle(Digest(ofKey: digest.description))
        return try withStore { (store, _) throws(CacheError) in try store.data(for: digest) }
    }
}
