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

/// The files of the page at which people look at a device's calls.
let consolePage: [Resource] = [
    "axis.js", "call.js", "calls.js", "client.js", "console.css", "counters.js", "events.js", "figures.js",
    "history.js", "index.html", "main.js", "player.js", "record.js", "recording.js", "route.js", "sound.js",
    "text.js", "timeline.js",
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
        .library(name: "Realtime", targets: ["Core", "Realtime"]),
        .library(name: "SecureTransport", targets: ["SecureTransport"]),
        .library(name: "SignalingClient", targets: ["SignalingClient", "CallControl", "JSON"]),
        .library(name: "AudioKit", targets: ["AudioKit"]),
        .library(name: "LoopbackAnalysis", targets: ["LoopbackAnalysis"]),
        .library(name: "Playout", targets: ["AudioKit", "Core", "Playout"]),
        .library(name: "VoiceActivity", targets: ["Realtime", "VoiceActivity"]),
        .library(name: "AudioDevices", targets: ["AudioDevices", "CScriptedCard", "Core", "Realtime"]),
        .library(name: "TestSupport", targets: ["TestSupport"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
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
        library("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),
        library("CYAML", pkgConfig: "yaml-0.1", apt: "libyaml-dev"),
        .target(
            name: "CPostgres", path: "Sources/CLibraries/CPostgres", cSettings: warningsOfC + [.define("_GNU_SOURCE")]),
        .target(
            name: "CPrograms", path: "Sources/CLibraries/CPrograms", cSettings: warningsOfC + [.define("_GNU_SOURCE")]),
        .target(
            name: "CRealtime", path: "Sources/CLibraries/CRealtime", cSettings: warningsOfC + [.define("_GNU_SOURCE")]),

        // Floor 1: base.
        module("Base", "Core", ["CRealtime"]),
        module("Base", "Cryptography", ["COpenSSL"]),
        module("Base", "JSON"),
        module("Base", "Identifiers", ["Core"]),
        module("Base", "XML", ["CExpat"]),
        module("Base", "Realtime", ["CRealtime", "Core", "Files"]),
        module("Base", "BlockingWork", ["Realtime"]),
        module("Base", "DomainNames", ["Core"]),
        module("Base", "NameLookup", ["CAres", "Core", "DomainNames"]),
        module("Base", "Files"),
        module("Base", "ConfigReader", ["CYAML", "Core", "Files"]),
        module("Base", "TLS", ["COpenSSL", "Files"]),

        // Floor 2: protocols, pure.
        module("Protocols", "Tracing", ["Core"]),
        module("Protocols", "RTP", ["Core"]),
        module("Protocols", "SDP", ["Core"]),
        module("Protocols", "ICE", ["Core", "Cryptography"]),
        module("Protocols", "SignalWire", ["Identifiers", "JSON"]),
        module("Protocols", "Enrollment", ["Core"]),
        module("Protocols", "CallControl", ["Core", "Identifiers", "JSON", "Tracing"]),
        module("Protocols", "ControlWire", ["Core", "JSON"]),
        module("Protocols", "SIP", ["Core", "Cryptography", "Identifiers"]),
        module("Protocols", "SIPSignaling", ["CallControl", "Core", "DomainNames", "SIP", "Tracing"]),
        module("Protocols", "BotWire", ["Core", "Cryptography", "JSON", "XML"]),
        module("Protocols", "CallFlow", ["BotWire", "Core", "XML"]),
        module("Protocols", "Voicemail", ["Core", "JSON"]),

        // Floor 3: media.
        module("Media", "AudioKit", ["COpus", "COpusFile", "CSpeexDSP", "Core", "Files", "Realtime"]),
        module("Media", "AudioPort", ["AudioKit", "Core", "Realtime", "VoiceActivity"]),
        module("Media", "Meetings", ["AudioKit", "AudioPort", "Realtime"]),
        module("Media", "VoiceActivity", ["Core", "Realtime"]),
        module("Media", "BotProbe", ["AudioKit"], resources: spokenQuestions),
        module("Media", "CallScript", ["AudioKit", "ConfigReader"]),
        module("Media", "AudioDevices", ["AudioKit", "CALSA", "CSpeexDSP", "Core", "Realtime"]),
        module("Media", "LoopbackAnalysis", ["AudioKit", "Core"]),
        module("Media", "Playout", ["AudioKit", "Core", "Realtime"]),
        module("Media", "SecureTransport", ["COpenSSL", "CSRTP", "CSRTPCiphers", "Core", "TLS"]),
        module(
            "Media", "CallMedia",
            ["AudioKit", "AudioPort", "Core", "ICE", "Playout", "RTP", "Realtime", "SecureTransport"]),
        module(
            "Media", "MediaEngine",
            [
                "AudioDevices", "AudioKit", "AudioPort", "CallMedia", "Core", "DomainNames", "Files", "ICE", "Playout",
                "RTP", "Realtime", "SecureTransport", "TLS",
            ]),

        // Floor 4: signaling.
        module("Signaling", "HTTPTransport", nio + ["Core", "Cryptography", "Files", "TLS", logging]),
        module(
            "Signaling", "SignalingClient",
            [
                "BlockingWork", "CallControl", "Core", "Cryptography", "Enrollment", "Files", "HTTPTransport", "JSON",
                "Realtime", "SignalWire", "TLS", "Tracing", logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        module(
            "Signaling", "SIPClient",
            [
                "CallControl", "Core", "DomainNames", "HTTPTransport", "ICE", "NameLookup", "Realtime", "SIP",
                "SIPSignaling", "SignalingClient", "TLS", logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOTLS", package: "swift-nio"),
            ]),
        module(
            "Signaling", "Monitoring",
            nio + ["ConfigReader", "Core", "Cryptography", "HTTPTransport", "Realtime", "Tracing", logging]),
        module(
            "Signaling", "ControlPlane",
            [
                "BlockingWork", "ConfigReader", "ControlWire", "Core", "Cryptography", "Files", "HTTPTransport",
                "Realtime", "TLS", logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        module("Signaling", "WebPhone", resources: webPage),
        module("Signaling", "WebConsole", ["WebPhone"], resources: consolePage),
        module(
            "Signaling", "ExchangeCore",
            ["COpenSSL", "CallControl", "Core", "Cryptography", "Enrollment", "JSON", "SDP", "SignalWire", "Tracing"]),
        module(
            "Signaling", "ExchangeServer",
            [
                "BlockingWork", "CPostgres", "CSQLite", "ConfigReader", "ControlPlane", "ControlWire", "Core",
                "Cryptography", "Enrollment", "ExchangeCore", "Files", "HTTPTransport", "ICE",
                "JSON", "Monitoring", "Realtime", "SDP", "SignalWire", "TLS", "Tracing", "WebPhone", logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),

        // Floor 5: agent.
        module(
            "Agent", "CallParticipation",
            ["AudioPort", "BotWire", "CallControl", "Core", "Realtime", "Tracing", "VoiceActivity", "Voicemail"]),
        module(
            "Agent", "CallSounds",
            ["AudioKit", "AudioPort", "BlockingWork", "CallParticipation", "Core", "Files", "Realtime"]),
        module(
            "Agent", "CallPrograms",
            [
                "AudioPort", "BotWire", "CPrograms", "CallControl", "CallParticipation", "ControlWire", "Core", "Files",
                "Realtime",
            ]),
        module(
            "Agent", "CallFlows",
            [
                "AudioKit", "AudioPort", "BlockingWork", "BotWire", "CallControl", "CallFlow", "CallParticipation",
                "CallPrograms", "CallSounds", "CallWebhooks", "ConfigReader", "Core", "Files", "Realtime",
            ]),
        module("Agent", "CallBridging", ["CallControl", "CallFlow", "CallParticipation", "Core"]),
        module(
            "Agent", "CallVoicemail",
            [
                "AudioKit", "AudioPort", "BlockingWork", "CallControl", "CallFlow", "CallFlows", "CallParticipation",
                "CallPrograms",
                "CallSounds", "Core", "Files", "JSON", "Voicemail",
            ]),
        module(
            "Agent", "CallMeetings",
            ["AudioPort", "CallControl", "CallParticipation", "Core", "Meetings", "Realtime"]),
        module(
            "Agent", "CallWebhooks",
            nio + ["BotWire", "CallControl", "CallParticipation", "Core", "HTTPTransport", "Realtime"]),
        module(
            "Agent", "BotCalls",
            nio + [
                "AudioPort", "BotWire", "CallControl", "CallParticipation", "CallWebhooks", "ConfigReader", "Core",
                "HTTPTransport", "Realtime", "TLS", "Tracing",
            ]),
        module(
            "Agent", "Call",
            [
                "AudioKit", "AudioPort", "CallControl", "CallMedia", "CallParticipation", "Core", "ICE", "Playout",
                "SDP",
                "SecureTransport", "Tracing", "VoiceActivity",
            ]),
        module("Agent", "CallDiagnosis", ["CallControl", "CallMedia", "Core", "Playout"]),
        module("Agent", "DeviceDiagnosis", ["CallDiagnosis", "Core"]),
        module(
            "Agent", "CallAgent",
            [
                "CallDiagnosis",
                "AudioDevices", "AudioKit", "AudioPort", "BlockingWork", "BotCalls", "BotWire", "Call", "CallBridging",
                "CallControl",
                "CallFlow", "CallFlows", "CallMedia", "CallMeetings", "CallParticipation", "CallPrograms",
                "CallVoicemail",
                "ConfigReader", "ControlPlane", "ControlWire",
                "Core", "DomainNames", "Files", "ICE",
                "JSON", "MediaEngine", "Monitoring", "NameLookup", "Playout", "RTP", "Realtime", "SDP", "SIP",
                "SIPClient",
                "SIPSignaling", "SecureTransport", "SignalingClient", "TLS", "Tracing",
                "VoiceActivity", "Voicemail", logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),

        module(
            "Agent", "DeviceControl",
            [
                "AudioKit", "AudioDevices", "BlockingWork", "CallAgent", "CallControl", "CallDiagnosis", "CallMedia",
                "CallMeetings", "ControlPlane", "ControlWire", "Core", "Files",
                "HTTPTransport", "JSON", "MediaEngine", "Playout", "Realtime", "Voicemail", "WebConsole", "WebPhone",
                logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        module(
            "Agent", "TrunkGateway",
            [
                "CallAgent", "CallControl", "ConfigReader", "ControlPlane", "ControlWire", "Core", "HTTPTransport",
                "Monitoring", "Realtime", "Tracing", logging,
                .product(name: "NIOCore", package: "swift-nio"),
            ]),
        module(
            "Agent", "Loopback",
            [
                "AudioDevices", "AudioKit", "AudioPort", "BotCalls", "BotProbe", "BotWire", "CallControl",
                "CallParticipation", "CallScript", "ConfigReader",
                "Core", "Files", "JSON", "LoopbackAnalysis", "Realtime",
            ]),

        // Floor 6: the command line.
        .executableTarget(
            name: "handset",
            // A build starts what is named first earlier: the longest chains, which begin with other packages.
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                logging, "BlockingWork", "ExchangeServer", "CallAgent", "CallDiagnosis", "AudioDevices", "AudioKit",
                "DeviceDiagnosis", "DomainNames", "HTTPTransport", "ICE", "NameLookup", "SIP", "SIPClient",
                "SIPSignaling",
                "TLS",
                "BotCalls",
                "Loopback", "BotProbe",
                "BotWire", "CallControl", "CallFlow", "CallFlows", "CallMedia", "CallPrograms", "CallScript",
                "CallVoicemail", "Voicemail",
                "ConfigReader", "ControlPlane", "ControlWire",
                "Realtime",
                "DeviceControl",
                "Enrollment", "ExchangeCore", "LoopbackAnalysis", "MediaEngine", "Core", "Monitoring", "Playout",
                "Files",
                "RTP", "VoiceActivity",
                "SecureTransport", "SignalWire", "SignalingClient", "Tracing", "TrunkGateway",
            ],
            path: "Sources/handset",
            // It is compiled when all else is, on one core, and computes nothing: optimising it takes four times as long.
            swiftSettings: warnings + strict + [.unsafeFlags(["-Onone"], .when(configuration: .release))]),

        // Tests mirror the floors.
        .target(name: "CEnvironment", path: "Tests/CEnvironment", cSettings: warningsOfC),
        .target(
            name: "TestSupport", dependencies: ["CEnvironment", "Core"], path: "Tests/Support", swiftSettings: relaxed),
        tests("AudioKitTests", ["AudioKit", "Files"], resources: [.copy("Resources/tone-500hz-stereo.opus")]),
        tests(
            "AudioPortTests",
            ["AudioKit", "AudioPort", "CThreadCounters", "Core", "LoopbackAnalysis", "Realtime", "VoiceActivity"]),
        tests(
            "MeetingsTests",
            [
                "AudioKit", "AudioPort", "CThreadCounters", "CallControl", "CallMeetings", "CallParticipation",
                "Meetings",
                "Realtime",
            ]),
        tests("VoiceActivityTests", ["Core", "LoopbackAnalysis", "VoiceActivity"]),
        tests("BotProbeTests", ["AudioKit", "BotProbe"]),
        tests("CallFlowTests", ["BotWire", "CallFlow", "Core"]),
        tests("CallBridgingTests", ["CallBridging", "CallControl", "CallFlow", "CallParticipation", "Core"]),
        tests("VoicemailTests", ["Core", "JSON", "Voicemail"]),
        tests("CallSoundsTests", ["CallSounds"]),
        tests(
            "CallVoicemailTests",
            [
                "AudioKit", "AudioPort", "CallControl", "CallParticipation", "CallVoicemail", "Core", "Files",
                "LoopbackAnalysis",
                "Voicemail",
            ]),
        tests(
            "CallFlowsTests",
            [
                "AudioKit", "AudioPort", "BotWire", "CallControl", "CallFlow", "CallFlows", "CallParticipation",
                "ConfigReader",
                "Core",
                "LoopbackAnalysis",
            ]),
        tests("CallScriptTests", ["AudioKit", "BotProbe", "CallScript", "ConfigReader"]),
        .target(name: "CScriptedCard", path: "Tests/CScriptedCard", exclude: ["plugin"], cSettings: warningsOfC),
        .target(
            name: "CardSupport", dependencies: ["CScriptedCard", "Core", "Realtime", "TestSupport"],
            path: "Tests/CardSupport",
            swiftSettings: relaxed),
        tests(
            "AudioDevicesTests",
            ["AudioDevices", "CThreadCounters", "CScriptedCard", "CardSupport", "Realtime", "AudioKit", "Core"]),
        tests(
            "LoopbackTests",
            [
                "AudioDevices", "AudioKit", "CThreadCounters", "CScriptedCard", "CardSupport", "ConfigReader",
                "Loopback", "LoopbackAnalysis", "Realtime", "Core",
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
                "AudioPort", "BotCalls", "BotWire", "CallAgent", "CallBridging", "CallDiagnosis", "CallFlow",
                "CallFlows", "CallMedia", "CallWebhooks",
                "CallMeetings", "CallPrograms", "CallSounds", "ConfigReader", "Voicemail",
                "ControlPlane", "ControlWire", "Core", "DeviceControl", "DeviceDiagnosis", "ExchangeCore",
                "ExchangeServer",
                "HTTPTransport", "Loopback",
                "LoopbackAnalysis", "MediaEngine", "Monitoring", "Playout",
                "AudioKit", "Realtime", "SIP", "SIPSignaling", "SecureTransport", "SignalWire", "SignalingClient",
                "handset",
                logging,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        tests("CommandTests", ["AudioKit", "CScriptedCard", "CardSupport", "RelaySupport", "handset"]),
        tests("BotWireTests", ["BotWire", "Core", "JSON"], resources: [.copy("Fixtures")]),
        tests("ControlWireTests", ["ControlWire", "Core", "JSON"]),
        tests(
            "CallAccountsTests",
            ["CallAgent", "CallControl", "ConfigReader", "Core", "SignalingClient", logging]),
        tests(
            "DeviceControlTests",
            [
                "AudioKit", "CallAgent", "ConfigReader", "ControlPlane", "ControlWire", "Core", "Cryptography",
                "DeviceControl", "HTTPTransport", "JSON", "MediaEngine", "Realtime", logging,
            ] + nio),
        tests("TimekeepingTests", ["Core"]),
        tests("BytesTests", ["Core"]),
        tests("DigestsTests", ["Core", "Cryptography"]),
        tests("JSONTests", ["JSON"]),
        tests("CallDiagnosisTests", ["CallControl", "CallDiagnosis"]),
        tests("DeviceDiagnosisTests", ["CallDiagnosis", "Core", "DeviceDiagnosis"]),
        tests("MonitoringTests", ["ConfigReader", "HTTPTransport", "Monitoring", "Tracing", logging] + nio),
        tests("TracingTests", ["Core", "Tracing"]),
        tests("XMLTests", ["XML"]),
        .target(
            name: "CRestrictedProcess", dependencies: ["CRealtime"], path: "Tests/CRestrictedProcess",
            cSettings: warningsOfC + [.define("_GNU_SOURCE")]),
        tests("RealtimeTests", ["CRestrictedProcess", "Realtime"]),
        tests("BlockingWorkTests", ["BlockingWork"]),
        tests("DatagramsTests", ["Core", "Realtime"]),
        tests("DomainNamesTests", ["DomainNames"]),
        tests("NameLookupTests", ["Core", "DomainNames", "NameLookup"]),
        tests("NetworkAddressTests", ["Core"]),
        tests("RTPTests", ["Core", "RTP"]),
        tests("SDPTests", ["Core", "SDP"]),
        tests("SIPTests", ["Core", "Identifiers", "Realtime", "SIP"], resources: [.copy("Vectors")]),
        tests("SIPSignalingTests", ["CallControl", "Core", "DomainNames", "JSON", "SIP", "SIPSignaling", "Tracing"]),
        tests("STUNTests", ["Core", "ICE"]),
        tests("MulticastDNSTests", ["Core", "DomainNames"]),
        tests("ICETests", ["Core", "ICE"]),
        tests("OpusCodecTests", ["AudioKit"]),
        tests("PlayoutTests", ["AudioKit", "Core", "Playout"]),
        .target(
            name: "DTLSSupport", dependencies: ["Core", "SecureTransport", "TestSupport"],
            path: "Tests/DTLSSupport", swiftSettings: relaxed),
        tests("SecureTransportTests", ["Core", "DTLSSupport", "SecureTransport", "TLS"]),
        tests("TLSTests", ["Cryptography", "TLS"]),
        tests("PeeringTests", ["CallMedia", "Core", "DTLSSupport", "ICE", "RTP", "Realtime", "SecureTransport"]),
        .target(
            name: "RelaySupport", dependencies: ["Core", "ICE", "Realtime", "TestSupport"],
            path: "Tests/RelaySupport", swiftSettings: relaxed),
        tests(
            "MediaEngineTests",
            [
                "CallControl", "CallDiagnosis", "CallMedia", "MediaEngine", "AudioKit", "AudioPort", "Realtime", "Core",
                "Playout", "RTP", "RelaySupport", "SecureTransport", "ICE", "DomainNames", "TLS",
            ]),
        tests(
            "CardCallTests",
            [
                "CallMedia", "MediaEngine", "AudioDevices", "AudioKit", "CThreadCounters", "CScriptedCard", "CallAgent",
                "CallControl", "CardSupport", "ConfigReader", "Core", "Playout", "Realtime", "SecureTransport",
            ]),
        .target(name: "CThreadCounters", path: "Tests/CThreadCounters", cSettings: warningsOfC),
        tests(
            "AllocationTests",
            [
                "CallMedia", "MediaEngine", "AudioDevices", "AudioKit", "AudioPort", "CThreadCounters",
                "LoopbackAnalysis", "Realtime", "Core", "Playout", "RTP", "SecureTransport", "VoiceActivity",
            ]),
        tests(
            "CallWebhooksTests",
            [
                "BotWire", "CallParticipation", "CallWebhooks", "Core", "HTTPTransport",
            ]),
        tests(
            "BotCallsTests",
            [
                "BotCalls", "BotWire", "CallParticipation", "CallWebhooks", "Core", "JSON",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ]),
        tests(
            "CallParticipationTests",
            [
                "AudioPort", "BotCalls", "BotWire", "CallControl", "CallFlows", "CallMeetings", "CallParticipation",
                "CallPrograms", "CallVoicemail", "Core", "LoopbackAnalysis", "Realtime", "VoiceActivity",
            ]),
        tests(
            "CallProgramsTests", ["AudioPort", "CallControl", "CallParticipation", "CallPrograms", "Core", "Realtime"]),
        tests(
            "TrunkGatewayTests",
            ["CallAgent", "CallControl", "ConfigReader", "ControlPlane", "Core", "Monitoring", "TrunkGateway"]),
        tests("CallControlTests", ["CallControl", "Core", "JSON"]),
        tests(
            "SignalingClientTests",
            nio + [
                "BlockingWork", "CallControl", "Core", "HTTPTransport", "JSON", "SignalWire", "SignalingClient", "TLS",
                "Tracing", logging,
            ]),
        .target(
            name: "SignalSupport", dependencies: ["SignalWire"], path: "Tests/SignalSupport", swiftSettings: relaxed),
        tests("SignedTokensTests", ["Cryptography", "ExchangeCore", "SignalSupport", "SignalWire"]),
        tests(
            "ExchangeTests",
            nio + [
                "ConfigReader", "ControlPlane", "Core", "Cryptography", "Enrollment", "ExchangeCore", "ExchangeServer",
                "HTTPTransport", "JSON", "Monitoring", "Realtime", "SDP", "SignalSupport", "SignalWire", "Tracing",
                logging,
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ]),
        tests(
            "ExchangeStoreTests",
            [
                "Core", "ExchangeCore", "ExchangeServer", "JSON", "SignalSupport", "SignalWire",
            ]),
        tests(
            "ExchangeIntegrationTests",
            nio + [
                "ConfigReader", "ControlPlane", "ControlWire", "Core", "Cryptography", "Enrollment", "ExchangeCore",
                "ExchangeServer", "HTTPTransport", "JSON",
                "Realtime", "SignalSupport", "SignalWire", "TLS", logging,
            ]),
        tests(
            "CallTests",
            [
                "AudioKit", "AudioPort", "Call", "CallControl", "CallMedia", "CallParticipation", "Core", "ICE", "JSON",
                "SDP",
                "SIPSignaling", "SecureTransport", "Tracing", "VoiceActivity",
            ]),
        tests(
            "CallAgentTests",
            [
                "AudioDevices", "AudioKit", "AudioPort", "BlockingWork", "BotCalls", "BotWire", "CThreadCounters",
                "Call", "CallAgent", "CallControl", "CallDiagnosis", "CallFlows", "CallMedia", "CallMeetings",
                "CallPrograms",
                "ConfigReader",
                "Core",
                "ExchangeCore",
                "ExchangeServer",
                "HTTPTransport", "ICE", "JSON", "LoopbackAnalysis", "MediaEngine", "Playout", "SDP", "SIP",
                "SIPClient", "SIPSignaling", "SecureTransport", "SignalWire", "SignalingClient", "Tracing",
                "TrunkGateway", "Monitoring",
                logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        tests(
            "HTTPTransportTests",
            nio + [
                "Core", "Cryptography", "HTTPTransport", "TLS", .product(name: "NIOEmbedded", package: "swift-nio"),
                logging,
            ]),
        tests(
            "SIPClientTests",
            [
                "CallControl", "Core", "HTTPTransport", "JSON", "SIP", "SIPClient", "SIPSignaling", "SignalingClient",
                "TLS", logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        tests("SignalWireTests", ["JSON", "SignalSupport", "SignalWire"]),

        // The readers of the fuzz targets, for their seeds. Fuzz/Package.swift builds them with the sanitizers.
        .target(name: "FuzzInput", path: "Fuzz/Sources/FuzzInput", swiftSettings: strict),
        .target(
            name: "FuzzWire", dependencies: ["BotWire", "Core", "FuzzInput"], path: "Fuzz/Sources/FuzzWire",
            swiftSettings: strict),
        .testTarget(
            name: "FuzzSeedsTests",
            dependencies: [
                "AudioKit", "AudioPort", "BotWire", "CallFlow", "CallScript", "ConfigReader", "ControlWire", "Core",
                "DomainNames", "Enrollment", "FuzzInput", "FuzzWire", "ICE", "Identifiers", "JSON", "Playout", "RTP",
                "SDP", "SIP",
                "SecureTransport", "SignalWire", "Tracing", "XML",
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
