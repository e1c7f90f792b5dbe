// swift-tools-version: 6.2
import PackageDescription

// What fit.py and compare.py ask for features and events; a package of its own so that the main build stays small.

let package = Package(
    name: "voice",
    dependencies: [.package(name: "handset", path: "../..")],
    targets: [
        .executableTarget(
            name: "voice", dependencies: [.product(name: "VoiceActivity", package: "handset")],
            swiftSettings: [.enableExperimentalFeature("Lifetimes")])
    ]
)
