// swift-tools-version: 6.2
import PackageDescription

// The floors of docs/architecture.md: a target imports only from the floors below it, or from its own floor where
// that page says so. CI builds with `--explicit-target-dependency-import-check error`, which holds everyone to it.

/// Warnings are errors, but in tests, with the compiler that CI uses: later ones may warn of more. Packages that depend
/// on this one are not affected.
#if compiler(>=6.3) && compiler(<6.4)
let warnings: [SwiftSetting] = [.treatAllWarnings(as: .error)]
let warningsOfC: [CSetting] = [.treatAllWarnings(as: .error)]
#else
let warnings: [SwiftSetting] = []
let warningsOfC: [CSetting] = []
#endif

let strict: [SwiftSetting] = [
    .strictMemorySafety(),
    .enableExperimentalFeature("Lifetimes"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// Tests are free of strict memory safety: `#expect` on unsafe results makes noise there and finds nothing.
let relaxed: [SwiftSetting] = [
    .enableExperimentalFeature("Lifetimes"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

func module(_ floor: String, _ name: String, _ dependencies: [Target.Dependency] = [], resources: [Resource] = [])
    -> Target
{
    .target(
        name: name, dependencies: dependencies, path: "Sources/\(floor)/\(name)", resources: resources,
        swiftSettings: warnings + strict)
}

func library(_ name: String, pkgConfig: String, apt: String) -> Target {
    .systemLibrary(name: name, path: "Sources/CLibraries/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

// Tests are compiled without the optimiser also where what they test is optimised (`scripts/test`): that takes less than half of the
// time, and they compute little themselves.
func tests(_ name: String, _ dependencies: [Target.Dependency], resources: [Resource] = []) -> Target {
    .testTarget(
        name: name, dependencies: dependencies + ["TestSupport"], path: "Tests/\(name)", resources: resources,
        swiftSettings: relaxed + [.unsafeFlags(["-Onone"], .when(configuration: .release))])
}

let nio: [Target.Dependency] = [
    .product(name: "NIOCore", package: "swift-nio"),
    .product(name: "NIOPosix", package: "swift-nio"),
    .product(name: "NIOHTTP1", package: "swift-nio"),
    .product(name: "NIOWebSocket", package: "swift-nio"),
    .product(name: "NIOTLS", package: "swift-nio"),
]
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")

/// The web phone's files, which stand in the program itself.
let webPage: [Resource] = [
    "backoff.js", "calls.js", "elements.js", "icon.svg", "index.html", "login.js", "main.js", "not-found.html",
    "peer.js", "people.js", "phone.css", "plot.js", "signaling.js", "sound.js", "stage.js", "stats.js", "words.js",
].map { .embedInCode("Page/\($0)") }

/// What `handset loopback bot` says: G.711 µ-law at 8 kHz.
let spokenQuestions: [Resource] = ["question-1", "question-2", "question-3", "interruption"].map {
    .embedInCode("Speech/\($0).ulaw")
}

let package = Package(
    name: "handset",
    products: [
        .executable(name: "handset", targets: ["handset"]),
        .library(name: "CallAgent", targets: ["CallAgent"]),
        // What the nested packages are made of.
        .library(name: "Datagrams", targets: ["Datagrams", "NetworkAddress", "Realtime", "Timekeeping"]),
        .library(name: "SecureTransport", targets: ["SecureTransport"]),
        .library(name: "SignalingClient", targets: ["SignalingClient", "CallControl", "JSON"]),
        .library(name: "AudioKit", targets: ["AudioKit"]),
        .library(name: "LoopbackAnalysis", targets: ["LoopbackAnalysis"]),
        .library(name: "Playout", targets: ["AudioKit", "Playout", "Timekeeping"]),
        .library(name: "VoiceActivity", targets: ["Realtime", "VoiceActivity"]),
        .library(name: "AudioDevices", targets: ["AudioDevices", "CScriptedCard", "Realtime", "Timekeeping"]),
        .library(name: "TestSupport", targets: ["TestSupport"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    ],
    targets: [
        // Floor 0: C libraries, and the little C that Swift cannot import.
        library("CALSA", pkgConfig: "alsa", apt: "libasound2-dev"),
        library("CAres", pkgConfig: "libcares", apt: "libc-ares-dev"),
        library("CExpat", pkgConfig: "expat", apt: "libexpat1-dev"),
        library("COpenSSL", pkgConfig: "openssl", apt: "libssl-dev"),
        library("COpus", pkgConfig: "opus", apt: "libopus-dev"),
        library("COpusFile", pkgConfig: "opusfile", apt: "libopusfile-dev"),
        library("CSRTP", pkgConfig: "libsrtp2", apt: "libsrtp2-dev"),
        .target(
            name: "CSRTPCiphers", dependencies: ["COpenSSL", "CSRTP"], path: "Sources/CLibraries/CSRTPCiphers",
            cSettings: warningsOfC),
        library("CSpeexDSP", pkgConfig: "speexdsp", apt: "libspeexdsp-dev"),
        library("CYAML", pkgConfig: "yaml-0.1", apt: "libyaml-dev"),
        .target(
            name: "CPrograms", path: "Sources/CLibraries/CPrograms", cSettings: warningsOfC + [.define("_GNU_SOURCE")]),
        .target(
            name: "CRealtime", path: "Sources/CLibraries/CRealtime", cSettings: warningsOfC + [.define("_GNU_SOURCE")]),

        // Floor 1: base.
        module("Base", "Timekeeping"),
        module("Base", "Bytes"),
        module("Base", "Cryptography", ["COpenSSL"]),
        module("Base", "JSON"),
        module("Base", "Identifiers"),
        module("Base", "XML", ["CExpat"]),
        module("Base", "Realtime", ["CRealtime", "Timekeeping"]),
        module("Base", "NetworkAddress", ["CRealtime"]),
        module("Base", "DomainNames", ["NetworkAddress"]),
        module("Base", "NameLookup", ["CAres", "DomainNames", "NetworkAddress"]),
        module("Base", "Datagrams", ["CRealtime", "NetworkAddress", "Realtime", "Timekeeping"]),
        module("Base", "Files"),
        module("Base", "ConfigReader", ["Bytes", "CYAML", "Files"]),
        module("Base", "TLS", ["COpenSSL", "Files"]),

        // Floor 2: protocols, pure.
        module("Protocols", "RTP", ["Bytes", "Timekeeping"]),
        module("Protocols", "SDP"),
        module("Protocols", "ICE", ["Bytes", "Cryptography", "NetworkAddress", "Timekeeping"]),
        module("Protocols", "MulticastDNS", ["NetworkAddress", "Timekeeping"]),
        module("Protocols", "SignalWire", ["Identifiers", "JSON"]),
        module("Protocols", "Enrollment", ["Bytes"]),
        module("Protocols", "CallControl", ["Identifiers", "JSON", "Timekeeping"]),
        module("Protocols", "ControlWire", ["JSON"]),
        module("Protocols", "SIP", ["Cryptography", "Identifiers", "NetworkAddress", "Timekeeping"]),
        module(
            "Protocols", "SIPSignaling",
            ["CallControl", "DomainNames", "JSON", "NetworkAddress", "SIP", "Timekeeping"]),
        module("Protocols", "BotWire", ["Bytes", "Cryptography", "JSON", "Timekeeping", "XML"]),

        // Floor 3: media.
        module("Media", "AudioKit", ["Bytes", "COpus", "COpusFile", "CSpeexDSP", "Files", "Realtime"]),
        module("Media", "AudioPort", ["AudioKit", "Realtime", "Timekeeping", "VoiceActivity"]),
        module("Media", "VoiceActivity", ["Bytes", "Realtime"]),
        module("Media", "BotProbe", ["AudioKit"], resources: spokenQuestions),
        module("Media", "AudioDevices", ["AudioKit", "CALSA", "CSpeexDSP", "Realtime", "Timekeeping"]),
        module("Media", "LoopbackAnalysis", ["AudioKit"]),
        module("Media", "Playout", ["AudioKit", "Bytes", "Realtime", "Timekeeping"]),
        module("Media", "SecureTransport", ["COpenSSL", "CSRTP", "CSRTPCiphers", "TLS", "Timekeeping"]),
        module(
            "Media", "CallMedia",
            [
                "AudioKit", "AudioPort", "Bytes", "Datagrams", "ICE", "NetworkAddress", "Playout", "RTP", "Realtime",
                "SecureTransport", "Timekeeping",
            ]),
        module(
            "Media", "MediaEngine",
            [
                "AudioDevices", "AudioKit", "AudioPort", "Bytes", "CallMedia", "Datagrams", "Files", "ICE",
                "MulticastDNS", "NetworkAddress", "Playout", "RTP", "Realtime", "SecureTransport", "TLS", "Timekeeping",
            ]),

        // Floor 4: signaling.
        module("Signaling", "HTTPTransport", nio + ["Bytes", "Files", "NetworkAddress", "TLS", "Timekeeping"]),
        module(
            "Signaling", "SignalingClient",
            [
                "Bytes", "CallControl", "Cryptography", "Enrollment", "Files", "HTTPTransport", "JSON", "SignalWire",
                "TLS", "Timekeeping", logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        module(
            "Signaling", "SIPClient",
            [
                "CallControl", "Datagrams", "DomainNames", "HTTPTransport", "ICE", "JSON", "NameLookup",
                "NetworkAddress", "Realtime", "SIP", "SIPSignaling", "SignalingClient", "TLS", "Timekeeping", logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOTLS", package: "swift-nio"),
            ]),
        module("Signaling", "WebPhone", resources: webPage),
        module(
            "Signaling", "ExchangeCore",
            [
                "Bytes", "COpenSSL", "CallControl", "Cryptography", "Enrollment", "JSON", "NetworkAddress", "SDP",
                "SignalWire", "Timekeeping",
            ]),
        module(
            "Signaling", "ExchangeServer",
            [
                "ConfigReader", "Cryptography", "Enrollment", "ExchangeCore", "Files", "HTTPTransport", "ICE", "JSON",
                "NetworkAddress", "Realtime", "SDP", "SignalWire", "TLS", "Timekeeping", "WebPhone", logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "GRDB", package: "GRDB.swift"),
            ]),

        // Floor 5: agent.
        module(
            "Agent", "CallPrograms",
            [
                "AudioPort", "BotWire", "CPrograms", "ControlWire", "Realtime", "Timekeeping", "VoiceActivity",
            ]),
        module("Agent", "CallPorts", ["AudioPort", "Realtime", "Timekeeping", "VoiceActivity"]),
        module(
            "Agent", "BotCalls",
            nio + [
                "AudioPort", "BotWire", "ConfigReader", "HTTPTransport", "NetworkAddress", "Realtime", "TLS",
                "Timekeeping", "VoiceActivity",
            ]),
        module(
            "Agent", "CallAgent",
            [
                "AudioDevices", "AudioKit", "AudioPort", "BotCalls", "BotWire", "CallControl", "CallMedia", "CallPorts",
                "CallPrograms", "ConfigReader", "Datagrams", "Files", "ICE", "JSON", "MediaEngine", "NetworkAddress",
                "Playout", "RTP", "Realtime", "SDP", "SIP", "SIPClient", "SIPSignaling", "SecureTransport",
                "SignalingClient", "TLS", "Timekeeping", "VoiceActivity", logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),

        module(
            "Agent", "DeviceControl",
            [
                "AudioKit", "AudioDevices", "CallAgent", "CallControl", "ControlWire", "MediaEngine", "Realtime",
                "Timekeeping", logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        module("Agent", "TrunkGateway", ["CallAgent", "CallControl", "ConfigReader", logging]),
        module(
            "Agent", "Loopback",
            [
                "AudioDevices", "AudioKit", "AudioPort", "BotCalls", "BotProbe", "BotWire", "ConfigReader", "JSON",
                "LoopbackAnalysis", "Realtime", "Timekeeping",
            ]),

        // Floor 6: the command line.
        .executableTarget(
            name: "handset",
            // A build starts what is named first earlier: the longest chains, which begin with other packages.
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                logging, "ExchangeServer", "CallAgent", "AudioDevices", "AudioKit", "BotCalls", "Loopback", "BotProbe",
                "BotWire", "CallControl", "CallMedia", "ConfigReader", "ControlWire", "Datagrams", "DeviceControl",
                "Enrollment", "ExchangeCore", "LoopbackAnalysis", "MediaEngine", "NetworkAddress", "Playout", "Files",
                "RTP", "Realtime", "SecureTransport", "SignalWire", "SignalingClient", "Timekeeping", "TrunkGateway",
            ],
            path: "Sources/handset", swiftSettings: warnings + strict),

        // Tests mirror the floors.
        .target(
            name: "TestSupport", dependencies: ["Timekeeping"], path: "Tests/Support", swiftSettings: relaxed),
        tests("AudioKitTests", ["AudioKit", "Files"], resources: [.copy("Resources/tone-500hz-stereo.opus")]),
        tests("AudioPortTests", ["AudioKit", "AudioPort", "LoopbackAnalysis", "Timekeeping", "VoiceActivity"]),
        tests("VoiceActivityTests", ["Bytes", "LoopbackAnalysis", "VoiceActivity"]),
        tests("BotProbeTests", ["AudioKit", "BotProbe"]),
        .target(name: "CScriptedCard", path: "Tests/CScriptedCard", exclude: ["plugin"], cSettings: warningsOfC),
        .target(
            name: "CardSupport", dependencies: ["CScriptedCard", "Realtime", "Timekeeping"], path: "Tests/CardSupport",
            swiftSettings: relaxed),
        tests(
            "AudioDevicesTests",
            ["AudioDevices", "CThreadCounters", "CScriptedCard", "CardSupport", "Realtime", "AudioKit", "Timekeeping"]),
        tests(
            "LoopbackTests",
            [
                "AudioDevices", "AudioKit", "CThreadCounters", "CScriptedCard", "CardSupport", "ConfigReader",
                "Loopback", "LoopbackAnalysis", "Realtime", "Timekeeping",
            ]),
        tests("LoopbackAnalysisTests", ["AudioKit", "LoopbackAnalysis"]),
        tests("LoopbackReportTests", ["AudioKit", "BotProbe", "JSON", "Loopback", "LoopbackAnalysis"]),
        tests("SpeakerphoneTests", ["AudioKit"]),
        tests("ConfigReaderTests", ["ConfigReader"]),
        tests("EnrollmentTests", ["Cryptography", "Enrollment"]),
        tests("PrivateFilesTests", ["Files"]),
        tests("RegularFilesTests", ["Files"]),
        tests(
            "HandsetTests",
            [
                "CallAgent", "ConfigReader", "ControlWire", "ExchangeCore", "ExchangeServer", "SignalingClient",
                "Timekeeping", "handset",
                logging,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        tests("CommandTests", ["AudioKit", "CScriptedCard", "CardSupport", "RelaySupport", "handset"]),
        tests("BotWireTests", ["BotWire", "JSON", "Timekeeping"], resources: [.copy("Fixtures")]),
        tests("ControlWireTests", ["ControlWire", "JSON"]),
        tests(
            "CallAccountsTests",
            ["CallAgent", "CallControl", "ConfigReader", "JSON", "SignalingClient", "Timekeeping", logging]),
        tests(
            "DeviceControlTests",
            ["AudioKit", "CallAgent", "ConfigReader", "ControlWire", "DeviceControl", "MediaEngine", logging]),
        tests("TimekeepingTests", ["Timekeeping"]),
        tests("BytesTests", ["Bytes"]),
        tests("DigestsTests", ["Bytes", "Cryptography"]),
        tests("JSONTests", ["JSON"]),
        tests("XMLTests", ["XML"]),
        .target(
            name: "CRestrictedProcess", dependencies: ["CRealtime"], path: "Tests/CRestrictedProcess",
            cSettings: warningsOfC + [.define("_GNU_SOURCE")]),
        tests("RealtimeTests", ["CRestrictedProcess", "Realtime"]),
        tests("DatagramsTests", ["Datagrams", "NetworkAddress", "Realtime", "Timekeeping"]),
        tests("DomainNamesTests", ["DomainNames"]),
        tests("NameLookupTests", ["DomainNames", "NameLookup", "NetworkAddress"]),
        tests("NetworkAddressTests", ["NetworkAddress"]),
        tests("RTPTests", ["Bytes", "RTP", "Timekeeping"]),
        tests("SDPTests", ["SDP"]),
        tests("SIPTests", ["Identifiers", "Realtime", "SIP", "Timekeeping"], resources: [.copy("Vectors")]),
        tests(
            "SIPSignalingTests",
            ["CallControl", "DomainNames", "JSON", "NetworkAddress", "SIP", "SIPSignaling", "Timekeeping"]),
        tests("STUNTests", ["ICE", "NetworkAddress"]),
        tests("MulticastDNSTests", ["MulticastDNS", "NetworkAddress", "Timekeeping"]),
        tests("ICETests", ["ICE", "NetworkAddress", "Timekeeping"]),
        tests("OpusCodecTests", ["AudioKit"]),
        tests("PlayoutTests", ["AudioKit", "Playout", "Timekeeping"]),
        .target(
            name: "DTLSSupport", dependencies: ["SecureTransport", "TestSupport", "Timekeeping"],
            path: "Tests/DTLSSupport", swiftSettings: relaxed),
        tests("SecureTransportTests", ["DTLSSupport", "SecureTransport", "TLS", "Timekeeping"]),
        tests("TLSTests", ["Cryptography", "TLS"]),
        tests(
            "PeeringTests",
            ["CallMedia", "DTLSSupport", "Datagrams", "ICE", "NetworkAddress", "RTP", "SecureTransport", "Timekeeping"]),
        .target(
            name: "RelaySupport", dependencies: ["Datagrams", "ICE", "NetworkAddress", "TestSupport", "Timekeeping"],
            path: "Tests/RelaySupport", swiftSettings: relaxed),
        tests(
            "MediaEngineTests",
            [
                "CallMedia", "MediaEngine", "AudioKit", "AudioPort", "Datagrams", "NetworkAddress", "Playout", "RTP",
                "RelaySupport", "SecureTransport", "ICE", "MulticastDNS", "Realtime", "TLS", "Timekeeping",
            ]),
        tests(
            "CardCallTests",
            [
                "CallMedia", "MediaEngine", "AudioDevices", "AudioKit", "CThreadCounters", "CScriptedCard", "CallAgent",
                "CallControl", "CardSupport", "ConfigReader", "NetworkAddress", "Playout", "Realtime",
                "SecureTransport", "Timekeeping",
            ]),
        .target(name: "CThreadCounters", path: "Tests/CThreadCounters", cSettings: warningsOfC),
        tests(
            "AllocationTests",
            [
                "CallMedia", "MediaEngine", "AudioDevices", "AudioKit", "AudioPort", "CThreadCounters",
                "LoopbackAnalysis", "Datagrams", "NetworkAddress", "Playout", "RTP", "Realtime", "SecureTransport",
                "Timekeeping", "VoiceActivity",
            ]),
        tests(
            "BotCallsTests",
            [
                "BotCalls", "BotWire", "Bytes", "JSON", "NetworkAddress", "Timekeeping",
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOEmbedded", package: "swift-nio"),
            ]),
        tests(
            "CallPortsTests",
            ["AudioPort", "CallPorts", "LoopbackAnalysis", "Realtime", "Timekeeping", "VoiceActivity"]),
        tests("CallProgramsTests", ["AudioPort", "CallPrograms", "Realtime", "Timekeeping"]),
        tests("TrunkGatewayTests", ["CallAgent", "CallControl", "ConfigReader", "TrunkGateway"]),
        tests("CallControlTests", ["CallControl", "JSON", "Timekeeping"]),
        tests(
            "SignalingClientTests",
            nio + [
                "CallControl", "HTTPTransport", "JSON", "SignalWire", "SignalingClient", "TLS", "Timekeeping", logging,
            ]),
        .target(
            name: "SignalSupport", dependencies: ["SignalWire"], path: "Tests/SignalSupport", swiftSettings: relaxed),
        tests("SignedTokensTests", ["Cryptography", "ExchangeCore", "SignalSupport", "SignalWire"]),
        tests(
            "ExchangeTests",
            nio + [
                "Bytes", "ConfigReader", "Cryptography", "Enrollment", "ExchangeCore", "ExchangeServer",
                "HTTPTransport", "JSON", "NetworkAddress", "SDP", "SignalSupport", "SignalWire", "Timekeeping", logging,
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ]),
        tests(
            "ExchangeStoreTests",
            [
                "ExchangeCore", "ExchangeServer", "JSON", "SignalSupport", "SignalWire", "Timekeeping",
                .product(name: "GRDB", package: "GRDB.swift"),
            ]),
        tests(
            "ExchangeIntegrationTests",
            nio + [
                "Bytes", "Cryptography", "Enrollment", "ExchangeCore", "ExchangeServer", "HTTPTransport", "JSON",
                "SignalSupport", "SignalWire", "TLS", "Timekeeping", logging,
            ]),
        tests(
            "CallAgentTests",
            [
                "AudioDevices", "AudioKit", "AudioPort", "BotCalls", "BotWire", "Bytes", "CThreadCounters", "CallAgent",
                "CallControl", "CallMedia", "CallPrograms", "ConfigReader", "ExchangeCore", "ExchangeServer",
                "HTTPTransport", "ICE", "JSON", "LoopbackAnalysis", "MediaEngine", "NetworkAddress", "Playout", "SDP",
                "SIP", "SecureTransport", "SignalWire", "SignalingClient", "Timekeeping", "TrunkGateway", logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        tests(
            "HTTPTransportTests",
            nio + [
                "Cryptography", "HTTPTransport", "NetworkAddress", "TLS", "Timekeeping",
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ]),
        tests(
            "SIPClientTests",
            [
                "CallControl", "HTTPTransport", "JSON", "NetworkAddress", "SIP", "SIPClient", "SIPSignaling",
                "SignalingClient", "TLS",
                logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        tests("SignalWireTests", ["JSON", "SignalSupport", "SignalWire"]),

        // The readers of the fuzz targets, for their seeds. Fuzz/Package.swift builds them with the sanitizers.
        .target(name: "FuzzInput", path: "Fuzz/Sources/FuzzInput", swiftSettings: strict),
        .target(
            name: "FuzzWire", dependencies: ["BotWire", "FuzzInput", "Timekeeping"], path: "Fuzz/Sources/FuzzWire",
            swiftSettings: strict),
        .testTarget(
            name: "FuzzSeedsTests",
            dependencies: [
                "AudioKit", "AudioPort", "BotWire", "Bytes", "ConfigReader", "ControlWire", "DomainNames", "Enrollment",
                "FuzzInput", "FuzzWire", "ICE", "Identifiers", "JSON", "MulticastDNS", "NetworkAddress", "Playout",
                "RTP", "SDP", "SIP", "SecureTransport", "SignalWire", "Timekeeping", "XML",
            ],
            path: "Tests/FuzzSeedsTests",
            swiftSettings: [
                .enableExperimentalFeature("Lifetimes"), .enableUpcomingFeature("InternalImportsByDefault"),
                .unsafeFlags(["-Onone"], .when(configuration: .release)),
            ]),
    ]
)

// `swift build` compiles every test of a package for one of them. With HANDSET_TESTS only the test modules it names exist.
if let named = Context.environment["HANDSET_TESTS"]?.split(separator: " ") {
    package.targets.removeAll { $0.type == .test && !named.contains(Substring($0.name)) }
}
