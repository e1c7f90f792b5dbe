// swift-tools-version: 6.2
import PackageDescription

// The callers of the cost, memory and set-up benchmarks, a package of its own so that the main build stays small.

let package = Package(
    name: "callers",
    dependencies: [.package(name: "handset", path: "../..")],
    targets: [
        .executableTarget(
            name: "callers",
            dependencies: [
                .product(name: "Network", package: "handset"),
                .product(name: "SecureTransport", package: "handset"),
                .product(name: "SignalingClient", package: "handset"),
            ],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("MemberImportVisibility"),
            ])
    ]
)
