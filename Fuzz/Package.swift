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
    ("bot-call", ["AudioPort", "BotWire", "Timekeeping"]),
    ("bot-exotel", ["BotWire", "FuzzWire"]),
    ("bot-offer", ["BotWire", "Timekeeping"]),
    ("bot-plivo", ["BotWire", "FuzzWire"]),
    ("bot-request", ["BotWire"]),
    ("bot-telnyx", ["BotWire", "FuzzWire"]),
    ("bot-twilio", ["BotWire", "FuzzWire"]),
    ("candidate", ["ICE"]),
    ("capture", ["AudioKit", "Playout", "RTP", "Timekeeping"]),
    ("control", ["ControlWire"]),
    ("dns", ["DomainNames"]),
    ("dtls", ["SecureTransport", "Timekeeping"]),
    ("enrollment", ["Enrollment"]),
    ("exec", ["BotWire"]),
    ("feedback", ["RTP", "Timekeeping"]),
    ("fragment", ["JSON", "SDP"]),
    ("json", ["JSON"]),
    ("jsonrpc", ["SignalWire"]),
    ("markup", ["BotWire"]),
    ("mdns", ["MulticastDNS", "NetworkAddress", "Timekeeping"]),
    ("noise", ["AudioKit"]),
    ("number", ["Identifiers"]),
    ("ogg-opus", ["AudioKit"]),
    ("recording", ["RTP"]),
    ("rtcp", ["RTP", "Timekeeping"]),
    ("rtp", ["RTP", "Timekeeping"]),
    ("sdp", ["SDP"]),
    ("sip", ["SIP"]),
    ("sip-agent", ["SIP", "Timekeeping"]),
    ("sip-stream", ["SIP"]),
    ("stun", ["ICE", "NetworkAddress"]),
    ("token", ["Bytes", "JSON", "SignalWire"]),
    ("turn", ["ICE", "NetworkAddress", "Timekeeping"]),
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
        module("Base", "Timekeeping"),
        module("Base", "Bytes"),
        module("Base", "Cryptography", ["COpenSSL"]),
        module("Base", "JSON"),
        module("Base", "Identifiers"),
        module("Base", "XML", ["CExpat"]),
        module("Base", "Files"),
        module("Base", "TLS", ["COpenSSL", "Files"]),
        module("Base", "ConfigReader", ["Bytes", "CYAML", "Files"]),
        module("Base", "NetworkAddress", ["CRealtime"]),
        module("Base", "DomainNames", ["NetworkAddress"]),
        module("Base", "Realtime", ["CRealtime", "Timekeeping"]),
        module("Protocols", "BotWire", ["Bytes", "Cryptography", "JSON", "Timekeeping", "XML"]),
        module("Protocols", "ControlWire", ["JSON"]),
        module("Protocols", "RTP", ["Bytes", "Timekeeping"]),
        module("Protocols", "SDP"),
        module("Protocols", "SIP", ["Cryptography", "Identifiers", "NetworkAddress", "Timekeeping"]),
        module("Protocols", "ICE", ["Bytes", "Cryptography", "NetworkAddress", "Timekeeping"]),
        module("Protocols", "MulticastDNS", ["NetworkAddress", "Timekeeping"]),
        module("Protocols", "SignalWire", ["Identifiers", "JSON"]),
        module("Protocols", "Enrollment", ["Bytes"]),
        module("Media", "AudioKit", ["Bytes", "COpus", "COpusFile", "CSpeexDSP", "Files", "Realtime"]),
        module("Media", "VoiceActivity", ["Bytes", "Realtime"]),
        module("Media", "AudioPort", ["AudioKit", "Realtime", "Timekeeping", "VoiceActivity"]),
        module("Media", "Playout", ["AudioKit", "Bytes", "Realtime", "Timekeeping"]),
        module("Media", "SecureTransport", ["COpenSSL", "CSRTP", "CSRTPCiphers", "TLS", "Timekeeping"]),
        .target(name: "FuzzInput", swiftSettings: strict),
        .target(name: "FuzzWire", dependencies: ["BotWire", "FuzzInput", "Timekeeping"], swiftSettings: strict),
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
