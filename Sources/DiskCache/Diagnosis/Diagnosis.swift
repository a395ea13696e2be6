// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

extension DirectoryFacts {
    /// What all that means.
    ///
    /// A pure function: the policy of `diskcache doctor`. What was not asked for has no finding.
    package var findings: [Finding] {
        let always = [
            directoryFinding, ownerFinding, permissionsFinding, versionFinding, fileSystemFinding,
            attributesFinding, unnamedFilesFinding, kernelFinding, processorFinding, accessTimesFinding,
            locksFinding, controlFinding, spaceFinding, inodesFinding, clockFinding, collectionsFinding,
        ]
        return always
            + [
                misplacedFinding, recordsFinding, memoryFinding, configurationFinding, limitFinding,
                workingSetFinding,
            ]
            .compactMap(\.self)
    }
}

extension SharedCache {
    /// Where the two files of an entry are, for those who want to look with their own tools.
    package func paths(of entry: CacheEntry) -> (entry: String, object: String) {
        (
            "\(path)/\(StoreLayout.entries)/\(StoreLayout.path(of: entry.keyDigest.digest))",
            "\(path)/\(StoreLayout.objects)/\(StoreLayout.path(of: entry.digest.digest))"
        )
    }
}
