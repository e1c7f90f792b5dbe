// swift-tools-version: 6.2
import PackageDescription

// Fuzz targets for everything that reads bytes from outside. `scripts/fuzz` builds and runs them.
//
// A package of its own, so that the main build stays small; `Modules` is a link to the main package's sources, so that
// only the few modules under test are built, with the sanitizers, and none of the main package's dependencies.
//
// To add a target: a line in `targets`, a file in `Targets/NAME`, a few good inputs in `Seeds/NAME`, and a line in
// Tests/FuzzSeedsTests, which reads each seed once in the tests' build. A reader in a module
// that needs the main package's dependencies is a link to its file in `Targets/NAME`, if it needs none of them itself.

let targets: [(name: String, modules: [Target.Dependency])] = [
    ("bot-audiosocket", ["BotWire", "FuzzWire"]),
    ("bot-call", ["AudioPort", "BotWire", "Core"]),
    ("bot-exotel", ["BotWire", "FuzzWire"]),
    ("bot-offer", ["BotWire", "Core"]),
    ("bot-plivo", ["BotWire", "FuzzWire"]),
    ("bot-realtime", ["BotWire", "FuzzWire"]),
    ("bot-request", ["BotWire"]),
    ("bot-telnyx", ["BotWire", "FuzzWire"]),
    ("bot-twilio", ["BotWire", "FuzzWire"]),
    ("call-flow", ["BotWire", "CallFlow", "Core"]),
    ("call-script", ["CallScript", "ConfigReader"]),
    ("candidate", ["ICE"]),
    ("capture", ["AudioKit", "Core", "Playout", "RTP"]),
    ("control", ["ControlWire", "Core"]),
    ("dns", ["DomainNames"]),
    ("dtls", ["Core", "SecureTransport"]),
    ("enrollment", ["Enrollment"]),
    ("exec", ["BotWire"]),
    ("feedback", ["Core", "RTP"]),
    ("fragment", ["JSON", "SDP"]),
    ("json", ["JSON"]),
    ("jsonrpc", ["SignalWire"]),
    ("markup", ["BotWire"]),
    ("mdns", ["Core", "DomainNames"]),
    ("noise", ["AudioKit"]),
    ("number", ["Identifiers"]),
    ("ogg-opus", ["AudioKit"]),
    ("recording", ["RTP"]),
    ("rtcp", ["Core", "RTP"]),
    ("rtp", ["Core", "RTP"]),
    ("sdp", ["SDP"]),
    ("sip", ["SIP"]),
    ("sip-agent", ["Core", "Identifiers", "SIP"]),
    ("sip-stream", ["SIP"]),
    ("stun", ["Core", "ICE"]),
    ("token", ["Core", "JSON", "SignalWire"]),
    ("traceparent", ["Tracing"]),
    ("turn", ["Core", "ICE"]),
    ("wav", ["AudioKit"]),
    ("websocket", []),
    ("xml", ["XML"]),
    ("yaml", ["ConfigReader"]),
]

let strict: [SwiftSetting] = [
    .strictMemorySafety(),
    .enableExperimentalFeature("Lifetimes"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

func module(_ floor: String, _ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, path: "Modules/\(floor)/\(name)", swiftSettings: strict)
}

func library(_ name: String, pkgConfig: String) -> Target {
    .systemLibrary(name: name, path: "Modules/CLibraries/\(name)", pkgConfig: pkgConfig)
}

let package = Package(
    name: "handset-fuzz",
    targets: [
        library("CExpat", pkgConfig: "expat"),
        library("COpenSSL", pkgConfig: "openssl"),
        library("COpus", pkgConfig: "opus"),
        library("COpusFile", pkgConfig: "opusfile"),
        library("CSRTP", pkgConfig: "libsrtp2"),
        .target(
            name: "CSRTPCiphers", dependencies: ["COpenSSL", "CSRTP"], path: "Modules/CLibraries/CSRTPCiphers"),
        library("CSpeexDSP", pkgConfig: "speexdsp"),
        library("CYAML", pkgConfig: "yaml-0.1"),
        .target(name: "CRealtime", path: "Modules/CLibraries/CRealtime", cSettings: [.define("_GNU_SOURCE")]),
        module("Base", "Core", ["CRealtime"]),
        module("Base", "Cryptography", ["COpenSSL"]),
        module("Base", "JSON"),
        module("Base", "Identifiers", ["Core"]),
        module("Base", "XML", ["CExpat"]),
        module("Base", "Files"),
        module("Base", "TLS", ["COpenSSL", "Files"]),
        module("Base", "ConfigReader", ["CYAML", "Core", "Files"]),
        module("Base", "DomainNames", ["Core"]),
        module("Base", "Realtime", ["CRealtime", "Core", "Files"]),
        module("Protocols", "Tracing", ["Core"]),
        module("Protocols", "BotWire", ["Core", "Cryptography", "JSON", "XML"]),
        module("Protocols", "CallFlow", ["BotWire", "Core", "XML"]),
        module("Protocols", "ControlWire", ["Core", "JSON"]),
        module("Protocols", "RTP", ["Core"]),
        module("Protocols", "SDP", ["Core"]),
        module("Protocols", "SIP", ["Core", "Cryptography", "Identifiers"]),
        module("Protocols", "ICE", ["Core", "Cryptography"]),
        module("Protocols", "SignalWire", ["Identifiers", "JSON"]),
        module("Protocols", "Enrollment", ["Core"]),
        module("Media", "AudioKit", ["COpus", "COpusFile", "CSpeexDSP", "Core", "Files", "Realtime"]),
        module("Media", "CallScript", ["AudioKit", "ConfigReader"]),
        module("Media", "VoiceActivity", ["Core", "Realtime"]),
        module("Media", "AudioPort", ["AudioKit", "Core", "Realtime", "VoiceActivity"]),
        module("Media", "Playout", ["AudioKit", "Core", "Realtime"]),
        module("Media", "SecureTransport", ["COpenSSL", "CSRTP", "CSRTPCiphers", "Core", "TLS"]),
        .target(name: "FuzzInput", swiftSettings: strict),
        .target(name: "FuzzWire", dependencies: ["BotWire", "Core", "FuzzInput"], swiftSettings: strict),
    ]
        + targets.map { target in
            .executableTarget(
                name: "fuzz-\(target.name)", dependencies: target.modules + ["FuzzInput"],
                path: "Targets/\(target.name)",
                // libFuzzer brings `main`; without this a lone file would be taken for a script with its own.
                swiftSettings: [
                    .unsafeFlags(["-parse-as-library"]), .enableExperimentalFeature("Lifetimes"), .define("LIBFUZZER"),
                ])
        }
)
