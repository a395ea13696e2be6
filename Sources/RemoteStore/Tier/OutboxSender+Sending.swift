// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import Platform

// The requests that the sending thread makes.

extension OutboxSender {
    /// Sends all pending changes; returns false if some are left.
    func sendAll(_ store: Store) -> Bool {
        guard writes else { return true }
        while true {
            work.withLock { $0.passes += 1 }
            var (done, left) = (0, 0)
            let pending = view.pending
            forgetTold(except: pending)
            for record in pending where record.work != .avoid {
                if isOver { return false }
                guard view.contains(record) else { continue }
                if send(record, store) { done += 1 } else { left += 1 }
            }
            for (key, moment) in endedDoubts {
                if isOver { return false }
                if sendAgain(key, doubtedUntil: moment, store) { done += 1 } else { left += 1 }
            }
            follow(store)
            if done == 0 || !view.hasWork && endedDoubts.isEmpty { return left == 0 }
        }
    }

    /// Sends the change of a record; returns false if a level still lacks the change.
    private func send(_ record: OutboxRecord, _ store: Store) -> Bool {
        let untold = told.withLock { told in
            levels.indices.filter { told[record.number]?.contains($0) != true }
        }
        let servers = untold.compactMap { level in
            levels[level].server(for: record.entry).map { (level: level, server: $0) }
        }
        // The disk is not read if no server would accept the change now.
        if !servers.isEmpty, !servers.contains(where: { $0.server.mayBeTold(record.work, in: store.control) })
        {
            return false
        }
        do throws(CacheError) {
            let found = try store.settled(record.entry, now: host.now())
            if let found, found.record.staysHere {
                return append(.done, record.entry, number: record.number, store)
            }
            let parcel = found.flatMap { makeParcel($0.record, $0.value, record.entry) }
            let levels = servers.filter { tell($0.server, record.entry, parcel, store) }.map(\.level)
            let isDone = levels.count == servers.count
            if isDone { return append(.done, record.entry, number: record.number, store) }
            told.withLock { $0[record.number, default: []].formUnion(levels) }
            return false
        } catch {
            return false
        }
    }

    /// Sends the key's value on disk again, because a server may have carried out an older request late.
    ///
    /// `RemoteModel` specifies the order of these steps.
    ///
    /// - Returns: Whether all servers of the key were updated.
    private func sendAgain(_ key: Digest, doubtedUntil moment: Int64, _ store: Store) -> Bool {
        let servers = levels.compactMap { $0.server(for: key) }
        guard servers.allSatisfy({ $0.mayBeTold(.remove, in: store.control) }) else { return false }
        do throws(CacheError) {
            let found = try store.settled(key, now: host.now())
            let parcel = found.flatMap { found in
                found.record.staysHere ? nil : makeParcel(found.record, found.value, key)
            }
            guard servers.allSatisfy({ tell($0, key, parcel, store) }) else { return false }
            return append(.certain(until: moment), key, store)
        } catch {
            return false
        }
    }

    /// Sends a change of a key, and records a doubt if the outcome is unknown.
    private func change(
        _ key: Digest,
        _ store: Store,
        _ body: () throws(RemoteFailure) -> Void
    ) throws(RemoteFailure) {
        do throws(RemoteFailure) {
            try body()
        } catch {
            if error.isOutcomeUnknown {
                let moment = (host.now() + Self.lateness).milliseconds
                store.noteForRemote(key, .doubt(until: moment))
            }
            throw error
        }
    }

    private func forgetTold(except pending: [OutboxRecord]) {
        told.withLock { told in
            if told.isEmpty { return }
            let numbers = Set(pending.map(\.number))
            told = told.filter { numbers.contains($0.key) }
        }
    }

    /// Puts a value into a level that lacked it, unless the value on disk has changed or the level has a value now.
    ///
    /// The caller holds the sender's lock, so a later change of the key is sent after this value.
    func send(_ fill: Fill, _ store: Store) {
        guard !isOver, !view.contains(fill.key), let server = levels[fill.level].server(for: fill.key) else {
            return
        }
        do throws(CacheError) {
            guard let found = try store.settled(fill.key, now: host.now()), !found.record.staysHere,
                found.record.content.digest == fill.content,
                let parcel = makeParcel(found.record, found.value, fill.key)
            else { return }
            add(parcel, fill.key, to: server, store)
        } catch {
            // The next miss in that level tries again.
            return
        }
    }

    private func add(_ parcel: RemoteEntry, _ key: Digest, to server: RemoteServer, _ store: Store) {
        do throws(RemoteFailure) {
            let present = try server.request(in: store) { () throws(RemoteFailure) in
                try server.client.get(key, until: deadline)
            }
            guard present == nil else { return }
            try server.store(in: store, until: deadline) { () throws(RemoteFailure) in
                try change(key, store) { () throws(RemoteFailure) in
                    // Another machine may have stored a newer value in the meantime.
                    try server.client.put(key, parcel, ifMissing: true, until: deadline)
                }
            }
            store.counters.add(.remoteWritten)
            store.counters.add(.remoteBytesSent, parcel.bytes.count)
        } catch {
            // `request` has already counted the failure. The next miss in that level tries again.
            return
        }
    }

    /// Returns the entry that the servers should store, or nil if they should store none.
    private func makeParcel(_ record: Record, _ value: Data, _ key: Digest) -> RemoteEntry? {
        let tags = record.details.tags
        guard !record.isNothing, Int64(value.count) >= configuration.minimumSize,
            Int64(value.count) <= configuration.maximumSize,
            configuration.tags.isEmpty || tags.contains(where: { configuration.tags.contains($0) })
        else { return nil }
        let bytes = record.forOthers.encoded(for: key)
        var parcel = RemoteEntry(record: bytes, bytes: value, digest: record.content.digest)
        if let expires = record.expires { parcel.lifetime = max(.milliseconds(1), expires - host.now()) }
        return parcel
    }

    /// Sends a value, or a removal if `parcel` is nil.
    ///
    /// - Returns: Whether nothing more has to be sent: the server carried out the change, or refuses it permanently.
    private func tell(
        _ server: RemoteServer,
        _ key: Digest,
        _ parcel: RemoteEntry?,
        _ store: Store
    ) -> Bool {
        do throws(RemoteFailure) {
            if let parcel {
                try server.store(in: store, until: deadline) { () throws(RemoteFailure) in
                    try change(key, store) { () throws(RemoteFailure) in
                        try server.client.put(key, parcel, until: deadline)
                    }
                }
            } else {
                try server.change(in: store, until: deadline) { () throws(RemoteFailure) in
                    try change(key, store) { () throws(RemoteFailure) in
                        try server.client.remove(key, until: deadline)
                    }
                }
            }
            store.counters.add(.remoteWritten)
            if let parcel { store.counters.add(.remoteBytesSent, parcel.bytes.count) }
            return true
        } catch {
            guard error.kind == .refused else { return false }
            store.counters.add(.remoteDropped)
            // The server's present value of the key is outdated, so it is removed.
            if parcel != nil, tell(server, key, nil, store) { return true }
            store.noteForRemote(key, .avoid)
            return true
        }
    }

    /// Appends a record of the sender; returns false if that fails.
    ///
    /// The caller must then pause before it sends the change again: without the record, the next pass finds the same
    /// change.
    private func append(
        _ work: OutboxRecord.Work,
        _ key: Digest,
        number: UInt64 = OutboxRecord.freshNumber(),
        _ store: Store
    ) -> Bool {
        do throws(Errno) {
            try store.outbox.append(OutboxRecord(number: number, entry: key, work: work))
            return true
        } catch {
            return false
        }
    }
}
