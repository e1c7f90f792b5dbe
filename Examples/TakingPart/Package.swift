// swift-tools-version: 6.2
import PackageDescription

// The code of the page "Taking part in calls" as a package of its own: a program that hears callers and speaks to them.
// `scripts/examples` builds and runs it.

let package = Package(
    name: "taking-part",
    dependencies: [.package(name: "handset", path: "../..")],
    targets: [
        .executableTarget(
            name: "TakingPart", dependencies: [.product(name: "CallAgent", package: "handset")],
            swiftSettings: [.enableUpcomingFeature("MemberImportVisibility")])
    ]
)
