// SPDX-License-Identifier: Apache-2.0

package import Platform

// Values that were fetched in parts: the partial file itself becomes the object, so no byte is written twice.

extension Store {
    /// Stores the complete content of `partial` under `key`.
    ///
    /// The bytes are read once, for their digest. Afterwards the file is no longer in `tmp/`, but can still be read through
    /// its descriptor.
    ///
    /// - Parameter makeRecord: returns the record of this content, or throws if it must not be stored.
    /// - Returns: the stored record.
    package func put(
        _ partial: PartialFile,
        for key: Digest,
        _ makeRecord: (Content) throws(CacheError) -> Record
    ) throws(CacheError) -> Record {
        let content = try objects.content(of: partial)
        let record = try makeRecord(content)
        if let most = longestValue, Int64(content.length) > most {
            let detail = "it is longer than \(most) bytes, the most that the limits allow"
            throw CacheError(.valueTooLarge, to: "store a value in", path: directory.path, detail: detail)
        }
        // Without this, the existing object with the same bytes would be replaced, and counted twice.
        if try objects.isPresent(content), try putWithoutBytes(record, for: key) {
            partial.discard()
            return record
        }
        try put(
            StagedCopy(
                object: objects.adopt(partial, content.length),
                content: content,
                reservation: Reservation()
            ),
            for: key,
            record
        )
        return record
    }

    /// Makes room for `partial` to grow to at least `length` bytes, and counts them in the usage before they are written.
    ///
    /// A sweep knows by how many bytes a reservation exceeds the file (``PartialFile/reservation(for:of:)``), and does not
    /// subtract them from the usage.
    ///
    /// - Parameters:
    ///   - total: the length of the whole value, if known; a value that can't be kept is refused at once.
    ///   - patience: the longest wait for space, if it is shorter than that of a put.
    /// - Returns: the length that is reserved now.
    /// - Throws: the errors of a put that finds no room: ``CacheError/Code/valueTooLarge``, ``CacheError/Code/noRoom``.
    package func reserve(
        _ length: Int,
        of total: Int?,
        in partial: PartialFile,
        now: Timestamp,
        within patience: Duration? = nil
    ) throws(CacheError) -> Int {
        let length = PartialFile.reservation(for: length, of: total)
        let whole = max(length, total ?? 0)
        if let most = longestValue, Int64(whole) > most {
            let detail = "it is longer than \(most) bytes, the most that the limits allow"
            throw CacheError(.valueTooLarge, to: "fetch a value into", path: directory.path, detail: detail)
        }
        let counted = partial.counted
        let missing = directory.allocation(of: length) - counted
        guard missing > 0 else { return length }
        let limits = configuration.limits
        if limits.areBounding {
            try refuseHopeless(whole, limits)
        } else if whole >= 1 << 20, try directory.space().availableBytes < Int64(whole) - counted {
            throw CacheError(errno: .noSpace, "fetch a value into", path: directory.path)
        }
        var wait = SpaceWait(patience: patience.map { min($0, space.patience) })
        let reservation = try reserve(length: Int(clamping: missing), record: 0, entries: 0, now: now, &wait)
        partial.count(counted + missing)
        // From here on, the bytes are counted as used, so the claim ends.
        _ = consume reservation
        return length
    }

    /// Counts `length` bytes of `partial` as used before they are written, without making space for them.
    package func count(_ length: Int, in partial: PartialFile) {
        partial.count(max(partial.counted, directory.allocation(of: length)))
    }

    /// Writes the record for an existing object; returns false if no object has these bytes.
    private func putWithoutBytes(_ record: Record, for key: Digest) throws(CacheError) -> Bool {
        var write = try EntryWrite(record, for: key, in: self)
        try objects.synchronizeIfDurable(record.content.digest)
        guard try write.run().isWritten else { return false }
        counters.add(.put)
        return true
    }
}

extension Objects {
    /// Returns the digest, length and checksum of the fetched bytes.
    fileprivate func content(of partial: PartialFile) throws(CacheError) -> Content {
        try describing("read a partial file in", directory.path) { () throws(Errno) in
            try partial.file.rewind()
            return try partial.file.describeContent()
        }
    }

    /// Turns the file into an object that has no name yet.
    fileprivate func adopt(_ partial: PartialFile, _ length: Int) throws(CacheError) -> TemporaryFile {
        try describing("store a partial file in", directory.path) { () throws(Errno) in
            if isDurable { try partial.file.synchronize() }
            var adopted = try partial.adopted(in: directory)
            adopted.allocatedSize = control.allocation(of: adopted.file, length: length)
            return adopted
        }
    }
}
