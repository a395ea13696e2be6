// SPDX-License-Identifier: Apache-2.0

import Platform

extension Errno {
    /// What opening or reading says of a symbolic link, a directory, a pipe, a socket or a device.
    var tellsOfNoFile: Bool {
        self == .tooManyLinks || self == .isDirectory || self == .noDeviceOrAddress
    }

    /// What a look at a file in a shard says where there is none: the shard may be no directory.
    var tellsOfNothing: Bool { self == .noEntry || self == .notDirectory }

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
