// swift-tools-version: 6.2
import PackageDescription

// The benchmark of sound cards' delays over a simulated day, a package of its own so that the main build stays small. It
// is built with -enable-testing, since it gives the device's loop time of its own.

let package = Package(
    name: "drift",
    dependencies: [.package(name: "handset", path: "../..")],
    targets: [
        .executableTarget(
            name: "drift",
            dependencies: [
                .product(name: "AudioDevices", package: "handset"),
                .product(name: "TestSupport", package: "handset"),
            ])
    ]
)
