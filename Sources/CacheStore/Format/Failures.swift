// SPDX-License-Identifier: Apache-2.0

import Platform

/// The meaning of a kernel error for a file of the cache.
///
/// All parts of the cache use this one table: the probe, get, put, collection, verification and repair. Only ``absent`` and
/// ``notAFile`` mean that there is no file of the cache. With any other error the file may be intact: it is left alone and
/// reported, and never deleted because of the error.
enum ErrnoMeaning: Sendable {
    /// There is no such file: its name is missing, or its shard is not a directory.
    case absent
    /// Another kind of file is in its place: a symbolic link, a directory, a pipe, a socket or a device.
    case notAFile
    /// This process lacks permission for the file: file permissions, a security module or a sandbox.
    case forbidden
    /// The kernel, the file system or a sandbox does not offer the call.
    case unsupported
    /// The medium fails, or the file system has found its own structures damaged.
    case mediumFails
    /// The file system is read-only.
    case readOnly
    /// The file system, a quota or the process's file size limit has no room.
    case noRoom
    /// Not related to the file: no descriptors, no memory, or any other error.
    case other
}

extension Errno {
    /// The meaning of the error for the file on which a system call failed, whichever call that was.
    var meaning: ErrnoMeaning {
        switch self {
        case .noEntry, .notDirectory: .absent
        case .tooManyLinks, .isDirectory, .noDeviceOrAddress: .notAFile
        case .accessDenied, .notPermitted: .forbidden
        case .notImplemented, .notSupported, .invalidArgument: .unsupported
        case .inputOutput, .structureNeedsCleaning, .badMessage: .mediumFails
        case .readOnlyFileSystem: .readOnly
        case .noSpace, .quotaExceeded, .fileTooLarge: .noRoom
        default: .other
        }
    }

    /// Whether opening or reading a symbolic link, a directory, a pipe, a socket or a device fails with this error.
    var isNotRegularFile: Bool { meaning == .notAFile }

    /// Whether access to a file in a shard fails with this error if the file is missing or the shard is not a directory.
    var isMissing: Bool { meaning == .absent }

    /// Whether a call on a name in a shard, which follows no symbolic link at its end, fails with this error if there is no
    /// such file.
    ///
    /// The shard itself may be a symbolic link that points to itself.
    var showsNoFile: Bool { isMissing || self == .tooManyLinks }

    /// Whether the error may concern this file alone: a damaged sector or inode, or permissions that a user has changed.
    var concernsOneFile: Bool { meaning == .forbidden || meaning == .mediumFails }

    /// Whether a file that can't be linked or renamed because of this error can be copied into the target directory
    /// instead.
    ///
    /// Links and renames between directories, or all links, may be forbidden by a sandbox or not supported.
    var leavesCopy: Bool { self == .crossDevice || self == .notPermitted || meaning == .unsupported }

    /// Whether a record can be written as a sidecar if setting its attribute fails with this error.
    ///
    /// The attribute does not fit, it may not be set, or another kind of file is in the entry's place.
    ///
    /// ext4 reports ENOSPC for an attribute that does not fit in its one block; if the disk is really full, writing the
    /// sidecar fails, too. The result is false for EACCES, which the kernel reports for another user's file: the caller
    /// has to decide that case.
    var leavesSidecar: Bool {
        switch self {
        case .noSpace, .outOfRange, .argumentListTooLong, .notPermitted: true
        default: meaning == .unsupported || meaning == .notAFile
        }
    }

    /// The kind of file that is in the place of a file or directory of the cache; nil if the error does not show it.
    var wordsOfNoFile: String? {
        switch self {
        case .tooManyLinks: "a symbolic link is in its place"
        case .isDirectory: "a directory is in its place"
        case .noDeviceOrAddress: "a pipe, a socket or a device is in its place"
        case .notDirectory: "something is in the place of a directory"
        default: nil
        }
    }
}

/// Runs an operation on a file in a shard; returns nil if the file does not exist or the shard can't contain it.
///
/// Rethrows every other error.
func ifFiled<Value: ~Copyable>(_ body: () throws(Errno) -> Value) throws(Errno) -> Value? {
    do throws(Errno) {
        return try body()
    } catch {
        if error.showsNoFile { return nil }
        throw error
    }
}

/// Runs an operation whose failure does no harm; returns nil if it fails.
///
/// A comment at each call explains why the failure is harmless, and how it is compensated.
@discardableResult
func bestEffort<Value: ~Copyable>(_ body: () throws(Errno) -> Value) -> Value? {
    do throws(Errno) {
        return try body()
    } catch {
        return nil
    }
}
