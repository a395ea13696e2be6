// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

/// Settings for everything below `Sources`: Swift 6, strict memory safety, and no warning survives.
let productSettings: [SwiftSetting] = [
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// Strict memory safety is left out of the tests: there it is noise.
let testSettings: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
]

/// What explores every state of a model is optimized in every build: without that it takes ten times as long.
let modelSettings: [SwiftSetting] =
    testSettings + [
        .unsafeFlags(["-O", "-whole-module-optimization", "-num-threads", "2", "-disable-batch-mode"])
    ]

let package = Package(
    name: "diskcache",
    products: [
        .library(name: "DiskCache", targets: ["DiskCache"]),
        .executable(name: "diskcache", targets: ["diskcache"]),
    ],
    targets: [
        .target(
            name: "CPlatform"
        ),
        .target(name: "Platform", dependencies: ["CPlatform"], swiftSettings: productSettings),
        .target(name: "CacheStore", dependencies: ["Platform"], swiftSettings: productSettings),
        .target(name: "DiskCache", dependencies: ["CacheStore", "Platform"], swiftSettings: productSettings),
        .executableTarget(
            name: "diskcache",
            dependencies: ["DiskCache", "CacheStore", "Platform"],
            exclude: ["Examples"],
            swiftSettings: productSettings
        ),
        .target(
            name: "TestSupport",
            dependencies: ["DiskCache", "Platform"],
            path: "Tests/TestSupport",
            swiftSettings: testSettings
        ),
        .target(name: "Models", path: "Tests/Models", swiftSettings: modelSettings),
        .executableTarget(
            name: "SystemCallProbe",
            dependencies: ["DiskCache"],
            path: "IntegrationTests/SystemCallProbe",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "ComputeProbe",
            dependencies: ["DiskCache"],
            path: "IntegrationTests/ComputeProbe",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "LockProbe",
            dependencies: ["DiskCache"],
            path: "IntegrationTests/LockProbe",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "ShutdownProbe",
            dependencies: ["DiskCache"],
            path: "IntegrationTests/ShutdownProbe",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "LimitProbe",
            dependencies: ["DiskCache"],
            path: "IntegrationTests/LimitProbe",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "StopProbe",
            dependencies: ["CacheStore", "Platform"],
            path: "IntegrationTests/StopProbe",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "LoadProbe",
            dependencies: ["DiskCache", "TestSupport"],
            path: "IntegrationTests/LoadProbe",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "HostProbe",
            dependencies: ["DiskCache", "Platform", "TestSupport"],
            path: "IntegrationTests/HostProbe",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "HostileProbe",
            dependencies: ["DiskCache", "Platform", "TestSupport"],
            path: "IntegrationTests/HostileProbe",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "CacheWorker",
            dependencies: ["DiskCache", "Platform"],
            path: "IntegrationTests/CacheWorker",
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "TestSupportTests",
            dependencies: ["TestSupport"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "ModelsTests",
            dependencies: ["Models", "TestSupport"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "PlatformTests",
            dependencies: ["Platform", "TestSupport"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "CacheStoreTests",
            dependencies: ["CacheStore", "Platform", "TestSupport"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "DiskCacheTests",
            dependencies: ["DiskCache", "CacheStore", "Platform", "TestSupport"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "CommandTests",
            dependencies: ["diskcache", "DiskCache", "CacheStore", "Platform", "TestSupport"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "IntegrationTests",
            dependencies: [
                "DiskCache", "CacheStore", "Platform", "TestSupport", "diskcache", "SystemCallProbe",
                "CacheWorker", "ComputeProbe", "ShutdownProbe", "LoadProbe", "LimitProbe", "HostProbe",
                "StopProbe", "HostileProbe", "LockProbe",
            ],
            path: "IntegrationTests",
            exclude: [
                "SystemCallProbe", "CacheWorker", "ComputeProbe", "ShutdownProbe", "LoadProbe", "LimitProbe",
                "HostProbe", "StopProbe", "HostileProbe", "LockProbe", "Scripts", "Expectations",
            ],
            swiftSettings: testSettings
        ),
    ],
    swiftLanguageModes: [.v6]
)
