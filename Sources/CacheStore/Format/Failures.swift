// SPDX-License-Identifier: Apache-2.0

import Platform

/// What an error of the kernel says of a file of the cache.
///
/// Every part of the cache goes by this one table: the probe, get, put, collection, verification and repair. Only
/// ``absent`` and ``notAFile`` say that no file of the cache is there. A file for which the kernel says anything else may
/// be whole: it is left alone and reported, and never deleted for it.
enum ErrnoMeaning: Sendable {
    /// There is no such file: it has no name, or its shard is no directory.
    case absent
    /// Something else is in its place: a symbolic link, a directory, a pipe, a socket or a device.
    case notAFile
    /// This process may not do that to this file: permissions, a security module or a sandbox.
    case forbidden
    /// The kernel, the file system or a sandbox does not offer the call.
    case unsupported
    /// The medium fails, or the file system has found its own structures damaged.
    case mediumFails
    /// The file system can only be read.
    case readOnly
    /// The file system, a quota or the process's limit has no room.
    case noRoom
    /// Nothing about the file: no descriptors, no memory, or anything else.
    case other
}

extension Errno {
    /// What it says of the file that a call was made for, whichever call that was.
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

    /// What opening or reading says of a symbolic link, a directory, a pipe, a socket or a device.
    var tellsOfNoFile: Bool { meaning == .notAFile }

    /// What a look at a file in a shard says where there is none: the shard may be no directory.
    var tellsOfNothing: Bool { meaning == .absent }

    /// Whether other files may well be as they should: a damaged sector or inode, or permissions that somebody has changed.
    var concernsOneFile: Bool { meaning == .forbidden || meaning == .mediumFails }

    /// Whether giving a file its name fails with this where a copy of it, written in the directory of the name, can get that
    /// name: links and renames between directories, or links at all, may be forbidden (a sandbox), or not be there.
    var leavesCopy: Bool { self == .crossDevice || self == .notPermitted || meaning == .unsupported }

    /// Whether setting an attribute fails with this where the same record can be written as a sidecar: the attribute has no
    /// room, may not be set, or something that is no file is in the entry's place.
    ///
    /// ext4 says ENOSPC to what does not fit its one block, so the sidecar must find out if the disk is full. EACCES is
    /// what the kernel says of a file that is another user's: that is for the caller to know.
    var leavesSidecar: Bool {
        switch self {
        case .noSpace, .outOfRange, .argumentListTooLong, .notPermitted: true
        default: meaning == .unsupported || meaning == .notAFile
        }
    }

    /// What is in the place of a file or a directory of the cache's, where this tells of it.
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

/// Gives nil where there is no such file in a shard, nor can be; every other error stays one.
func ifFiled<Value: ~Copyable>(_ body: () throws(Errno) -> Value) throws(Errno) -> Value? {
    do throws(Errno) {
        return try body()
    } catch {
        // A link in the shard's place may lead to itself.
        if error.tellsOfNothing || error == .tooManyLinks { return nil }
        throw error
    }
}

/// Runs what may fail without harm, and gives nil then: the caller says above why, and what makes up for it.
@discardableResult
func bestEffort<Value: ~Copyable>(_ body: () throws(Errno) -> Value) -> Value? {
    do throws(Errno) {
        return try body()
    } catch {
        return nil
    }
}
