// swift-tools-version: 6.2
import PackageDescription

// The jitter buffer's benchmark, a package of its own so that the main build stays small.

let package = Package(
    name: "jitter",
    dependencies: [.package(name: "handset", path: "../..")],
    targets: [
        .executableTarget(
            name: "jitter",
            dependencies: [
                .product(name: "Playout", package: "handset"),
                .product(name: "TestSupport", package: "handset"),
            ],
            swiftSettings: [.enableExperimentalFeature("Lifetimes")])
    ]
)
