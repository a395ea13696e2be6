// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

let settings: [SwiftSetting] = [
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// A package of its own, so that who depends on diskcache gets none of this.
let package = Package(
    name: "benchmarks",
    dependencies: [
        .package(name: "diskcache", path: "..")
    ],
    targets: [
        .executableTarget(
            name: "adapter",
            dependencies: [.product(name: "DiskCache", package: "diskcache")],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "sharing",
            dependencies: [.product(name: "DiskCacheRemote", package: "diskcache")],
            swiftSettings: settings
        ),
    ],
    swiftLanguageModes: [.v6]
)
