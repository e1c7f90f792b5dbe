// swift-tools-version: 6.2
import PackageDescription

// What calibrate.py asks for the measure of speech; a package of its own so that the main build stays small.

let package = Package(
    name: "quality",
    dependencies: [.package(name: "handset", path: "../..")],
    targets: [
        .executableTarget(
            name: "quality",
            dependencies: [
                .product(name: "AudioKit", package: "handset"),
                .product(name: "LoopbackAnalysis", package: "handset"),
            ],
            swiftSettings: [.enableExperimentalFeature("Lifetimes")])
    ]
)
