// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

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
            swiftSettings: [
                .strictMemorySafety(),
                .treatAllWarnings(as: .error),
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("MemberImportVisibility"),
            ]
        )
    ],
    swiftLanguageModes: [.v6]
)
