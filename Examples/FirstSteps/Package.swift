// swift-tools-version: 6.2
import PackageDescription

// The code of the page "First steps" as a package of its own, which knows of Handset what any other program does: the
// library that Package.swift lists as a product. `scripts/examples` builds it.

let package = Package(
    name: "first-steps",
    dependencies: [.package(name: "handset", path: "../..")],
    targets: [
        .executableTarget(
            name: "FirstSteps", dependencies: [.product(name: "CallAgent", package: "handset")],
            swiftSettings: [.enableUpcomingFeature("MemberImportVisibility")])
    ]
)
