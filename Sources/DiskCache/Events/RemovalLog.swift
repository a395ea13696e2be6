// SPDX-License-Identifier: Apache-2.0

public import CacheStore
public import FoundationEssentials

extension LoggedRemoval {
    /// When the key was removed.
    public var time: Date { moment.date }
}
