// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The files of the package, found relative to this one.
enum PackageFiles {
    static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
    static let root = tests.deletingLastPathComponent()
}
