// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// How the cache is configured: all else is as by default.
enum Variant: String, Sendable, CaseIterable {
    /// The default configuration.
    case memory
    /// Nothing is kept in memory.
    case disk
    /// As `disk`, with the metadata in files instead of extended attributes.
    case sidecar
    /// As `disk`, with values verified by their length only.
    case length
    /// The default configuration with puts that are published in the background.
    case behind
    /// As `disk`; keys that are read as absent were put and removed, so that the disk must be asked; once each.
    case removed

    /// The variant of this name; none means `memory`.
    init(name: String) throws(Options.Failure) {
        guard let variant = name.isEmpty ? .memory : Variant(rawValue: name) else {
            throw Options.Failure(description: "there is no variant \(name)")
        }
        self = variant
    }

    /// The configuration for measuring.
    ///
    /// The cache is not counted among those that are open, or closing it would scan the directory.
    func configuration(isSynced: Bool) -> CacheConfiguration {
        var configuration = CacheConfiguration()
        configuration.durability = isSynced ? .fsync : .none
        configuration.janitor.joinsSession = false
        switch self {
        case .memory: break
        case .behind: configuration.writing = .behind
        case .disk, .removed: configuration.memory = .none
        case .sidecar:
            configuration.memory = .none
            configuration.metadataForm = .sidecar
        case .length:
            configuration.memory = .none
            configuration.verification = .length
        }
        return configuration
    }

    /// The configuration for what is done once and not by the measured operations: no memory, no janitor, as
    /// the commands of `diskcache` have it.
    func configurationForMaintenance() -> CacheConfiguration {
        var configuration = configuration(isSynced: false)
        configuration.memory = .none
        configuration.writing = .through
        configuration.janitor.isEnabled = false
        return configuration
    }
}
