// swift-tools-version: 6.2
import PackageDescription

// The rings and threads alone, so that the thread sanitizer, which multiplies the time of a build, builds only them.
// Its reports on `Synchronization.Mutex` are false, so code that rests on a Mutex is not among them.

let settings: [SwiftSetting] = [
    .enableExperimentalFeature("Lifetimes"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]
let strict = settings + [.strictMemorySafety(), .enableUpcomingFeature("InternalImportsByDefault")]

let package = Package(
    name: "sanitized",
    targets: [
        .target(name: "CRealtime", path: "Sources/CLibraries/CRealtime", cSettings: [.define("_GNU_SOURCE")]),
        .target(name: "Core", dependencies: ["CRealtime"], path: "Sources/Base/Core", swiftSettings: strict),
        .target(name: "Files", path: "Sources/Base/Files", swiftSettings: strict),
        .target(
            name: "Realtime", dependencies: ["CRealtime", "Core", "Files"], path: "Sources/Base/Realtime",
            swiftSettings: strict),
        .target(name: "CEnvironment", path: "Tests/CEnvironment"),
        .target(
            name: "TestSupport", dependencies: ["CEnvironment", "Core"], path: "Tests/Support", swiftSettings: settings),
        .target(
            name: "CRestrictedProcess", dependencies: ["CRealtime"], path: "Tests/CRestrictedProcess",
            cSettings: [.define("_GNU_SOURCE")]),
        // Not what is about memory: the sanitizer has some of its own, which is never locked.
        .testTarget(
            name: "RealtimeTests", dependencies: ["CRestrictedProcess", "Realtime", "TestSupport"],
            path: "Tests/RealtimeTests", exclude: ["ProcessMemoryTests.swift"], swiftSettings: settings),
    ]
)
