// swift-tools-version: 6.2
import PackageDescription

// What codecs cost, a package of its own so that the main build stays small.

let package = Package(
    name: "codecs",
    dependencies: [.package(name: "handset", path: "../..")],
    targets: [
        .executableTarget(
            name: "codecs",
            dependencies: [
                .product(name: "AudioKit", package: "handset"),
                .product(name: "Playout", package: "handset"),
                .product(name: "TestSupport", package: "handset"),
            ],
            swiftSettings: [.enableExperimentalFeature("Lifetimes")])
    ]
)
