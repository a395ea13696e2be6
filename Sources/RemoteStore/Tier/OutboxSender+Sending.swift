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
            for record in pending {
                if isOver { return false }
                guard view.contains(record) else { continue }
                if send(record, store) { done += 1 } else { left += 1 }
            }
            for (key, moment) in endedDoubts {
                if isOver { return false }
                if sendAgain(key, doubtedUntil: moment, store) { done += 1 } else { left += 1 }
            }
            // Otherwise the same changes would be sent again at once.
            guard follow(store) else { return false }
            if done == 0 || !view.hasWork && endedDoubts.isEmpty { return left == 0 }
        }
    }

    /// Sends the change of a record; returns false if a level still lacks the change.
    private func send(_ record: OutboxRecord, _ store: Store) -> Bool {
        let untold = told.withLock { told in
            levels.indices.filter { told[record.identity]?.contains($0) != true }
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
            let version = ChangeVersion(rawValue: record.number)
            let found = try change(of: record.entry, noted: version, store)
            if case .later = found { return false }
            guard case .now(let change) = found else {
                return append(.done, record.entry, number: record.number, store)
            }
            let levels = servers.filter { tell($0.server, change, store) }.map(\.level)
            let isDone = levels.count == servers.count
            if isDone { return append(.done, record.entry, number: record.number, store) }
            told.withLock { $0[record.identity, default: []].formUnion(levels) }
            return false
        } catch {
            return false
        }
    }

    /// Sends the key's value on disk again, because a server may have carried out an older request late.
    ///
    /// - Returns: Whether all servers of the key were updated.
    private func sendAgain(_ key: Digest, doubtedUntil moment: Int64, _ store: Store) -> Bool {
        let servers = levels.compactMap { $0.server(for: key) }
        guard servers.allSatisfy({ $0.mayBeTold(.remove, in: store.control) }) else { return false }
        do throws(CacheError) {
            switch try change(of: key, noted: try store.removedVersion(of: key), store) {
            case .later: return false
            case .now(let change):
                guard servers.allSatisfy({ tell($0, change, store) }) else { return false }
            case .never: break
            }
            return append(.certain(until: moment), key, store)
        } catch {
            return false
        }
    }

    /// The latest change of a key, as it is sent.
    private struct Change {
        let key: Digest
        let version: ChangeVersion
        let parcel: RemoteEntry
        var isRemoval = false
        /// Whether the servers need it only if they have an older entry.
        var isOptional = false

        /// Creates a removal.
        init(removalOf key: Digest, at version: ChangeVersion) {
            self.key = key
            self.version = version
            parcel = RemoteEntry(removalOf: key, at: version)
            isRemoval = true
        }

        /// Creates a removal of all values that are older than a version; the value of that version may be sent later.
        init(removalBefore version: ChangeVersion, of key: Digest) {
            self.init(removalOf: key, at: ChangeVersion(rawValue: max(1, version.rawValue) - 1))
            isOptional = true
        }

        init(of key: Digest, _ version: ChangeVersion, _ parcel: RemoteEntry) {
            (self.key, self.version, self.parcel) = (key, version, parcel)
        }
    }

    /// Whether a change is sent.
    private enum Sending {
        case now(Change)
        /// The servers should keep their entries.
        case never
        /// The clock was set back: other machines would not take the change, or this machine has the value again later.
        case later
    }

    /// Returns the change that the servers should store.
    ///
    /// It is the value on disk, unless it is older than the change that was noted, and otherwise a removal.
    private func change(
        of key: Digest,
        noted version: ChangeVersion,
        _ store: Store
    ) throws(CacheError) -> Sending {
        if !store.versions.isInTime(version) { return .later }
        let now = host.now()
        guard let (record, present) = try store.settled(key, now: now), record.version >= version else {
            return version == .none ? .never : .now(Change(removalOf: key, at: version))
        }
        if !store.versions.isInTime(record.version) { return .later }
        guard let value = present else {
            if record.isOfFuture(at: now) { return .later }
            return version == .none ? .never : .now(Change(removalOf: key, at: version))
        }
        if record.staysHere { return .never }
        guard let parcel = makeParcel(record, value, key) else {
            return .now(Change(removalBefore: record.version, of: key))
        }
        return .now(Change(of: key, record.version, parcel))
    }

    /// Sends a change of a key, and records a doubt if the outcome is unknown.
    private func sending(
        _ key: Digest,
        _ store: Store,
        _ body: () throws(RemoteFailure) -> Void
    ) throws(RemoteFailure) {
        do throws(RemoteFailure) {
            try body()
        } catch {
            if error.isOutcomeUnknown {
                let moment = (host.now() + Self.lateness).milliseconds
                // If this fails, the change stays pending all the same.
                _ = append(.doubt(until: moment), key, store)
            }
            throw error
        }
    }

    private func forgetTold(except pending: [OutboxRecord]) {
        told.withLock { told in
            if told.isEmpty { return }
            let identities = Set(pending.map(\.identity))
            told = told.filter { identities.contains($0.key) }
        }
    }

    /// Puts a value into a level that lacked it, unless the value on disk has changed or the level has a later one now.
    ///
    /// The caller holds the sender's lock, so a later change of the key is sent after this value.
    func send(_ fill: Fill, _ store: Store) {
        guard !isOver, !view.contains(fill.key), let server = levels[fill.level].server(for: fill.key) else {
            return
        }
        do throws(CacheError) {
            guard let (record, present) = try store.settled(fill.key, now: host.now()), let value = present,
                !record.staysHere, record.content.digest == fill.content,
                let parcel = makeParcel(record, value, fill.key)
            else { return }
            _ = tell(server, Change(of: fill.key, record.version, parcel), store)
        } catch {
            // The next miss in that level tries again.
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

    /// Sends a change.
    ///
    /// - Returns: Whether nothing more has to be sent: the server has the change or a later one, or refuses it permanently.
    private func tell(_ server: RemoteServer, _ change: Change, _ store: Store) -> Bool {
        var present: ChangeVersion?
        func put() throws(RemoteFailure) {
            try sending(change.key, store) { () throws(RemoteFailure) in
                present = try server.client.putIfNewer(
                    change.key,
                    change.parcel,
                    onlyReplacing: change.isOptional,
                    upTo: store.versions.latestInTime,
                    until: deadline
                )
            }
        }
        do throws(RemoteFailure) {
            // A removal needs space on the server, too.
            try server.store(isRemoval: change.isRemoval, in: store, until: deadline, put)
            if let present {
                advance(beyond: present, store)
            } else {
                store.counters.add(.remoteWritten)
                store.counters.add(.remoteBytesSent, change.parcel.bytes.count)
            }
            return true
        } catch {
            guard error.kind == .refused else { return false }
            // The server's present value of the key is outdated.
            let removal = Change(removalBefore: change.version, of: change.key)
            guard change.isRemoval || tell(server, removal, store) else { return false }
            store.counters.add(.remoteDropped)
            return true
        }
    }

    /// Makes the next changes of this machine later than an entry on a server.
    private func advance(beyond version: ChangeVersion, _ store: Store) {
        if !store.versions.isInTime(version) { return }
        do throws(CacheError) {
            try store.versions.advance(beyond: version)
        } catch {
            // The next change of the key may be older than the entry, although it is made later.
            store.counters.add(.controlFailure)
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
