// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Files of the package, found from this one.
enum PackageFiles {
    static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
    static let root = tests.deletingLastPathComponent()
}
