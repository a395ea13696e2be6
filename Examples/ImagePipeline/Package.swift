// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

let settings: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
]

/// A package of its own, so that who depends on diskcache needs no libgd.
let package = Package(
    name: "image-pipeline",
    products: [
        .library(name: "Images", targets: ["Images"])
    ],
    dependencies: [
        .package(name: "diskcache", path: "../..")
    ],
    targets: [
        // Its module map names the library to link with: no more is needed where gd.h is in /usr/include.
        .systemLibrary(name: "CGD", providers: [.apt(["libgd-dev"])]),
        .target(
            name: "Images",
            dependencies: [
                "CGD", .product(name: "DiskCache", package: "diskcache"),
                .product(name: "DiskCacheHTTP", package: "diskcache"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "ImageWorker",
            dependencies: [
                "Images", .product(name: "DiskCache", package: "diskcache"),
                .product(name: "DiskCacheHTTP", package: "diskcache"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "ImagesTests",
            dependencies: [
                "CGD", "Images", "ImageWorker", .product(name: "DiskCache", package: "diskcache"),
            ],
            swiftSettings: settings
        ),
    ],
    swiftLanguageModes: [.v6]
)
