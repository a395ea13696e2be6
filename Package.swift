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

/// Models, the simulator and what makes and judges the values of tests are optimized in every build: without that they
/// take several times as long.
let optimizedSettings: [SwiftSetting] =
    testSettings + [
        .unsafeFlags(["-O", "-whole-module-optimization", "-num-threads", "2", "-disable-batch-mode"])
    ]

let package = Package(
    name: "diskcache",
    products: [
        .library(name: "DiskCache", targets: ["DiskCache"]),
        .library(name: "DiskCacheHTTP", targets: ["DiskCacheHTTP"]),
        .library(name: "DiskCacheURLProtocol", targets: ["DiskCacheURLProtocol"]),
        .library(name: "DiskCacheRemote", targets: ["DiskCacheRemote"]),
        .executable(name: "diskcache", targets: ["diskcache"]),
        .executable(name: "diskcache-net", targets: ["diskcache-net"]),
    ],
    targets: [
        .target(
            name: "CPlatform"
        ),
        .target(name: "Platform", dependencies: ["CPlatform"], swiftSettings: productSettings),
        .target(name: "CacheStore", dependencies: ["Platform"], swiftSettings: productSettings),
        .target(name: "DiskCache", dependencies: ["CacheStore", "Platform"], swiftSettings: productSettings),
        .target(
            name: "CTransport",
            // A library of its own before glibc 2.34.
            linkerSettings: [.linkedLibrary("dl")]
        ),
        .target(name: "Transport", dependencies: ["CTransport", "Platform"], swiftSettings: productSettings),
        .target(
            name: "RemoteStore",
            dependencies: ["DiskCache", "CacheStore", "Platform", "Transport"],
            swiftSettings: productSettings
        ),
        .target(
            name: "DiskCacheRemote",
            dependencies: ["DiskCache", "RemoteStore"],
            swiftSettings: productSettings
        ),
        .target(
            name: "DiskCacheHTTP",
            dependencies: ["DiskCache", "CacheStore", "Transport", "Platform"],
            swiftSettings: productSettings
        ),
        .target(
            name: "DiskCacheURLProtocol",
            dependencies: ["DiskCacheHTTP", "Platform"],
            swiftSettings: productSettings
        ),
        .target(
            name: "DiskCacheCommand",
            dependencies: ["DiskCache", "CacheStore", "Platform"],
            swiftSettings: productSettings
        ),
        .executableTarget(
            name: "diskcache",
            dependencies: ["DiskCacheCommand"],
            exclude: ["Examples"],
            swiftSettings: productSettings
        ),
        .executableTarget(
            name: "diskcache-net",
            dependencies: [
                "DiskCacheCommand", "DiskCacheHTTP", "RemoteStore", "Transport", "DiskCache", "CacheStore",
                "Platform",
            ],
            swiftSettings: productSettings
        ),
        .target(
            name: "TestSupport",
            dependencies: ["DiskCache", "Platform"],
            path: "Tests/TestSupport",
            swiftSettings: optimizedSettings
        ),
        .target(name: "Models", path: "Tests/Models", swiftSettings: optimizedSettings),
        .executableTarget(
            name: "Probes",
            dependencies: [
                "DiskCache", "DiskCacheHTTP", "DiskCacheRemote", "CacheStore", "Platform", "TestSupport",
            ],
            path: "IntegrationTests/Probes",
            swiftSettings: testSettings
        ),
        .executableTarget(name: "SandboxProbe", path: "IntegrationTests/SandboxProbe"),
        .target(
            name: "CSimulator",
            path: "IntegrationTests/CSimulator",
            linkerSettings: [.linkedLibrary("dl")]
        ),
        .executableTarget(
            name: "Simulator",
            dependencies: ["CSimulator", "DiskCache", "CacheStore", "Platform", "TestSupport"],
            path: "IntegrationTests/Simulator",
            swiftSettings: optimizedSettings
        ),
        .executableTarget(
            name: "Tutorial",
            dependencies: ["DiskCache"],
            path: "IntegrationTests/Tutorial"
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
            name: "TransportTests",
            dependencies: ["Transport", "Platform", "TestSupport"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "DiskCacheTests",
            dependencies: ["DiskCache", "CacheStore", "Platform", "TestSupport"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "RemoteStoreTests",
            dependencies: [
                "RemoteStore", "DiskCache", "CacheStore", "Platform", "Transport", "TestSupport", "Models",
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "DiskCacheHTTPTests",
            dependencies: [
                "DiskCacheHTTP", "DiskCache", "CacheStore", "Transport", "Platform", "TestSupport",
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "DiskCacheURLProtocolTests",
            dependencies: ["DiskCacheURLProtocol", "DiskCacheHTTP", "DiskCache", "Platform", "TestSupport"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "CommandTests",
            dependencies: [
                "DiskCacheCommand", "diskcache", "diskcache-net", "DiskCache", "CacheStore", "Platform",
                "DiskCacheHTTP", "RemoteStore", "TestSupport",
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "IntegrationTests",
            dependencies: [
                "DiskCache", "CacheStore", "Platform", "TestSupport", "DiskCacheHTTP", "DiskCacheRemote",
                "RemoteStore",
                "DiskCacheCommand", "diskcache", "diskcache-net", "Probes", "SandboxProbe", "Simulator",
                "Tutorial",
            ],
            path: "IntegrationTests",
            exclude: [
                "Probes", "SandboxProbe", "Tutorial", "Scripts", "Expectations", "CSimulator", "Simulator",
            ],
            swiftSettings: testSettings
        ),
    ],
    swiftLanguageModes: [.v6]
)
