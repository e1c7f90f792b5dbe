// swift-tools-version: 6.2
import PackageDescription

// The callers of the cost, memory and set-up benchmarks, a package of its own so that the main build stays small.

let package = Package(
    name: "callers",
    dependencies: [
        .package(name: "handset", path: "../.."),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    ],
    targets: [
        .executableTarget(
            name: "callers",
            dependencies: [
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "Realtime", package: "handset"),
                .product(name: "SecureTransport", package: "handset"),
                .product(name: "SignalingClient", package: "handset"),
            ],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("MemberImportVisibility"),
            ])
    ]
)
