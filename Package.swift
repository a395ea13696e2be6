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
        .executableTarget(name: "SandboxProbe", path: "IntegrationTests/SandboxProbe"),
        .executableTarget(
            name: "Tutorial",
            dependencies: ["DiskCache"],
            path: "IntegrationTests/Tutorial"
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
            name: "FetchProbe",
            dependencies: ["DiskCacheHTTP", "DiskCache"],
            path: "IntegrationTests/FetchProbe",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "CacheWorker",
            dependencies: ["DiskCache", "Platform"],
            path: "IntegrationTests/CacheWorker",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "RemoteProbe",
            dependencies: ["DiskCacheRemote"],
            path: "IntegrationTests/RemoteProbe",
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
                "DiskCacheCommand", "diskcache", "diskcache-net", "SystemCallProbe", "CacheWorker",
                "ComputeProbe", "ShutdownProbe", "LoadProbe", "LimitProbe", "HostProbe", "StopProbe",
                "HostileProbe", "LockProbe", "RemoteProbe", "FetchProbe", "SandboxProbe", "Tutorial",
            ],
            path: "IntegrationTests",
            exclude: [
                "SystemCallProbe", "CacheWorker", "ComputeProbe", "ShutdownProbe", "LoadProbe", "LimitProbe",
                "HostProbe", "StopProbe", "HostileProbe", "LockProbe", "RemoteProbe", "FetchProbe",
                "SandboxProbe", "Tutorial",
                "Scripts", "Expectations",
            ],
            swiftSettings: testSettings
        ),
    ],
    swiftLanguageModes: [.v6]
)
