// SPDX-License-Identifier: Apache-2.0

extension ProtocolModel {
    /// The single call that a writer makes.
    enum Program: Hashable {
        case put(Key, Content)
        case remove(Key)
        case setExpiration(Key)

        var firstStep: WriterStep {
            switch self {
            case .put: .lookForObject
            case .remove: .lockEntry
            case .setExpiration: .readRecord
            }
        }

        var key: Key {
            switch self {
            case .put(let key, _), .remove(let key), .setExpiration(let key): key
            }
        }

        /// The content that it uses, as determined by the initial states.
        var content: Content {
            if case .put(_, let content) = self { content } else { .a }
        }

        /// Whether it may remove or replace the record that another put published.
        var displacesRecords: Bool {
            if case .setExpiration = self { false } else { true }
        }
    }

    /// The writers' system calls; each case is the next one of the process.
    enum WriterStep: UInt8, CaseIterable {
        // put: its object.
        /// fstatat without a lock; ENOENT means that the object must be written. A writer that guesses so makes no call.
        case lookForObject
        /// flock the object stripe, shared.
        case lockObject
        /// utimensat, which raises the ctime; ENOENT means that the object must be written after all.
        case touchObject
        /// Unlock the stripe: no lock is held while the bytes are written.
        case unlockToStage
        /// O_TMPFILE, write: the file is invisible to other processes, and a crash leaves nothing.
        case stage
        /// flock the object stripe again.
        case lockToLink
        /// linkat; EEXIST leads back to `touchObject`, under the lock.
        case linkObject
        /// Only in `Change.objectUnlockedBeforePublishing`.
        case unlockObjectEarly

        // put and remove: the entry.
        /// flock the entry stripe, shared.
        case lockEntry
        /// setxattr by name: the commit, if the entry exists.
        case setAttribute
        /// open with O_CREAT and O_EXCL; EEXIST leads back to `setAttribute`.
        case createEntry
        /// fsetxattr on the inode just created, even if the name now leads to another one: the commit.
        case setAttributeOfCreated
        /// unlinkat.
        case unlinkEntry

        // setExpiration, in the sidecar form.
        /// Read the record without a lock.
        case readRecord
        /// flock the stripe of the object that the record names, shared.
        case lockReadObject
        /// utimensat; ENOENT means not found.
        case touchReadObject
        /// flock the entry stripe, exclusive.
        case lockEntryExclusively
        /// Read the record again and compare it.
        case compareRecord
        /// renameat a new inode with the new record over the entry: the commit.
        case renameRecord
        /// The record had changed: unlock the entry stripe, then the object stripe, and read again.
        case unlockEntryToRetry
        /// See `unlockEntryToRetry`.
        case unlockObjectToRetry

        // All programs: the end.
        /// Unlock the entry stripe.
        case unlockEntry
        /// Unlock the object stripe.
        case unlockObject
        /// The call returns to its caller.
        case doReturn
        /// The process has returned or died.
        case ended
    }
}

extension ProtocolModel.Model {
    /// Takes the next step of a writer; returns false if it waits for a lock or has ended.
    func advance(writer index: UInt8, in state: inout State) -> Bool {
        let program = index == 0 ? first : second
        if state[writer: index].step == program.firstStep && state[writer: index].attempts == 0 {
            let isSameKey = first.key == second.key
            state[writer: index].startedLast = isSameKey && state[writer: 1 &- index].step == .ended
        }
        switch program {
        case .put(let key, let content): return put(key, content, by: index, in: &state)
        case .remove(let key): return remove(key, by: index, in: &state)
        case .setExpiration(let key): return setExpiration(key, by: index, in: &state)
        }
    }

    /// `put`: the object stripe is held from the check of the object until the entry is published.
    private func put(_ key: Key, _ content: Content, by index: UInt8, in state: inout State) -> Bool {
        var me = state[writer: index]
        let stripe = stripe(of: content)
        switch me.step {
        case .lookForObject:
            me.step = guesses(index) || state[content] == .absent ? .stage : .lockObject
        case .lockObject, .lockToLink:
            guard state.grants(object: .shared(stripe), to: index) else { return false }
            me.objectLock = .shared(stripe)
            me.step = me.step == .lockObject ? .touchObject : .linkObject
        case .touchObject:
            let isPresent = state[content] != .absent
            if isPresent && change != .putWithoutTouch { state[content] = state.clock }
            me.step = isPresent || change == .putTrustsLook ? stepAfterObject : .unlockToStage
        case .unlockToStage:
            me.objectLock = .none
            me.step = .stage
        case .stage:
            me.step = .lockToLink
        case .linkObject:
            let isPresent = state[content] != .absent
            if !isPresent { state[content] = state.clock }
            me.step = isPresent ? .touchObject : stepAfterObject
        case .unlockObjectEarly:
            me.objectLock = .none
            me.step = .lockEntry
        default:
            return publish(Record(content, by: index), under: key, by: index, in: &state)
        }
        state[writer: index] = me
        return true
    }

    private func guesses(_ index: UInt8) -> Bool { guessing & (1 &<< index) != 0 }

    private var stepAfterObject: WriterStep {
        change == .objectUnlockedBeforePublishing ? .unlockObjectEarly : .lockEntry
    }

    /// The second half of `put`: setxattr in place, or create with O_EXCL and fsetxattr on the created inode.
    private func publish(_ record: Record, under key: Key, by index: UInt8, in state: inout State) -> Bool {
        var me = state[writer: index]
        let inode = index &+ 2
        switch me.step {
        case .lockEntry where change == .putWithoutEntryLock:
            me.step = .setAttribute
        case .lockEntry:
            guard state.grants(entry: .shared(stripe(of: key)), to: index) else { return false }
            me.entryLock = .shared(stripe(of: key))
            me.step = guesses(index) ? .createEntry : .setAttribute
        case .setAttribute:
            if !state[key].isAbsent { state[key].record = record }
            me.step = state[key].isAbsent ? .createEntry : .unlockEntry
        case .createEntry:
            let isNew = state[key].isAbsent
            if isNew {
                state[key] = Entry(inode: inode)
                state.noteRename(of: key)
            }
            me.step = isNew ? .setAttributeOfCreated : .setAttribute
        case .setAttributeOfCreated:
            if state[key].inode == inode { state[key].record = record }
            me.step = .unlockEntry
        default:
            return finish(by: index, in: &state)
        }
        state[writer: index] = me
        return true
    }

    /// `remove`: unlink under the shared entry stripe.
    private func remove(_ key: Key, by index: UInt8, in state: inout State) -> Bool {
        switch state[writer: index].step {
        case .lockEntry:
            guard state.grants(entry: .shared(stripe(of: key)), to: index) else { return false }
            state[writer: index].entryLock = .shared(stripe(of: key))
            state[writer: index].step = .unlinkEntry
        case .unlinkEntry:
            state[key] = .absent
            state[writer: index].step = .unlockEntry
        default:
            return finish(by: index, in: &state)
        }
        return true
    }

    /// The common end: the entry stripe is released first, then the object stripe, then the call returns.
    private func finish(by index: UInt8, in state: inout State) -> Bool {
        switch state[writer: index].step {
        case .unlockEntry:
            state[writer: index].entryLock = .none
            state[writer: index].step = state[writer: index].objectLock == .none ? .doReturn : .unlockObject
        case .unlockObject:
            state[writer: index].objectLock = .none
            state[writer: index].step = .doReturn
        case .doReturn:
            state[writer: index].end(returning: true)
        default:
            return false
        }
        return true
    }

    /// `setExpiration`: touch the object, then replace the record if it is still the one that was read.
    private func setExpiration(_ key: Key, by index: UInt8, in state: inout State) -> Bool {
        var me = state[writer: index]
        switch me.step {
        case .readRecord:
            me.read = state[key].record
            me.step = me.read.isNone ? .doReturn : .lockReadObject
        case .lockReadObject:
            let hold = Hold.shared(stripe(of: me.read.content))
            guard state.grants(object: hold, to: index) else { return false }
            me.objectLock = hold
            me.step = change == .expirationWithoutTouch ? .lockEntryExclusively : .touchReadObject
        case .touchReadObject:
            let isPresent = state[me.read.content] != .absent
            if isPresent { state[me.read.content] = state.clock }
            me.step = isPresent ? .lockEntryExclusively : .unlockObject
        case .lockEntryExclusively:
            let hold = Hold.exclusive(stripe(of: key))
            guard state.grants(entry: hold, to: index) else { return false }
            me.entryLock = hold
            me.step = change == .expirationWithoutCompare ? .renameRecord : .compareRecord
        case .compareRecord:
            me.step = state[key].record == me.read ? .renameRecord : .unlockEntryToRetry
        case .renameRecord:
            state[key] = Entry(inode: index &+ 2, record: me.read.rewritten(by: index))
            state.noteRename(of: key)
            me.hasRewritten = true
            me.read = .none
            me.step = .unlockEntry
        default:
            return retryExpiration(by: index, in: &state)
        }
        state[writer: index] = me
        return true
    }

    /// The record had changed: `setExpiration` releases its locks and starts over, at most twice.
    private func retryExpiration(by index: UInt8, in state: inout State) -> Bool {
        switch state[writer: index].step {
        case .unlockEntryToRetry:
            state[writer: index].entryLock = .none
            state[writer: index].step = .unlockObjectToRetry
        case .unlockObjectToRetry:
            state[writer: index].objectLock = .none
            state[writer: index].read = .none
            state[writer: index].attempts &+= 1
            state[writer: index].step = state[writer: index].attempts < 3 ? .readRecord : .doReturn
        default:
            return finish(by: index, in: &state)
        }
        return true
    }
}
