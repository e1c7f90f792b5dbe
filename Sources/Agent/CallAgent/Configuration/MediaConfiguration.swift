public import CallControl
internal import ConfigReader
public import Datagrams
public import MediaEngine
public import OpusCodec
public import Playout
internal import Realtime
public import SecureTransport

/// Sockets, codec and playout of a device.
public struct MediaConfiguration: Sendable {
    /// The address that media sockets are bound to and that offers and answers name; nil, or the wildcard address, leaves
    /// that to ``MediaAddress``.
    public var address: SocketAddress?
    /// The first worker's port; 0 for any.
    public var port: UInt16 = 0
    /// Media threads.
    public var workers = 1
    /// SCHED_FIFO priority of the media threads; nil does not ask for it.
    public var realtimePriority: Int32? = 20
    /// Codecs that calls may have, the preferred one first.
    public var codecs = SoundCodec.allCases
    /// How our Opus is encoded.
    public var encoder = EncoderSettings()
    /// How the peer's audio is played out.
    public var playout = PlayoutConfiguration()
    /// Suites to offer, the preferred one first.
    public var suites = SRTPSuite.allCases
    /// What our own calls offer; the peer's offers are answered in their own way.
    public var offers = OfferKind.webRTC
    /// Interfaces that calls may use.
    public var interfaces = InterfaceFilter()
    /// Reach peers through TURN servers only, so that they learn no address of ours.
    public var usesRelaysOnly = false
    /// STUN and TURN servers besides those that the service names.
    public var iceServers: [CallControl.ICEServer] = []
    /// A file of PEM with the authorities that vouch for TURN servers over TLS; nil stands for the system's.
    public var relayTrustRoots: String?
    /// Say yes to media that is not encrypted.
    public var allowsPlainMedia = false

    /// How a call of ours is to be connected.
    public enum OfferKind: String, CaseIterable, Sendable {
        /// By ICE, with keys from DTLS, as browsers do it.
        case webRTC = "webrtc"
        /// To a plain address, with keys in the description (RFC 4568).
        case sdes
    }

    /// Makes the default configuration.
    ///
    /// At 40 kb/s the encoder expects the least loss at which libopus 1.3 adds in-band FEC: more would mend no more, and
    /// take more from calls that lose nothing. At 32 kb/s FEC begins at 7 % only, and speech that is coded once more, as
    /// an echo is, is then no longer as good as new.
    public init() {
        encoder.bitrateBps = 40_000
        encoder.expectedLossPercent = 5
    }

    mutating func read(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        if let host = section.string("address", &problems) {
            address = SocketAddress(host: host, port: 0)
            if let address {
                Self.bind(address, section, &problems)
            } else {
                problems.append(section.problem("address", "\"\(host)\" is no IPv4 or IPv6 address such as 192.0.2.1"))
            }
        }
        port = UInt16(section.integer("port", in: 0...65_535, &problems) ?? 0)
        workers = section.integer("workers", in: 1...64, &problems) ?? workers
        if let priority = section.integer("realtime_priority", in: 0...99, &problems) {
            realtimePriority = priority == 0 ? nil : Int32(priority)
        }
        offers = section.enumeration("offers", of: OfferKind.self, &problems) ?? offers
        interfaces.allowed = section.list("interfaces", &problems) ?? []
        interfaces.denied = section.list("ignored_interfaces", &problems) ?? []
        usesRelaysOnly = section.bool("relay_only", &problems) ?? false
        iceServers = (section.sections("ice_servers", &problems) ?? []).compactMap { ICEServer($0, &problems) }
        relayTrustRoots = section.certificates("relay_trust_roots", &problems)
        allowsPlainMedia = section.bool("allow_plain_rtp", &problems) ?? false
        if let opus = section.section("opus", &problems) { encoder.read(opus, &problems) }
        if let jitter = section.section("jitter", &problems) { playout.read(jitter, &problems) }
        readSuites(section, &problems)
        readCodecs(section, &problems)
        section.rejectUnknownKeys(
            known: [
                "address", "port", "workers", "realtime_priority", "allow_plain_rtp", "opus", "jitter", "srtp_suites",
                "codecs", "offers", "interfaces", "ignored_interfaces", "relay_only", "ice_servers",
                "relay_trust_roots",
            ], &problems)
    }

    /// Finds out whether the machine has the address.
    private static func bind(_ address: SocketAddress, _ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        guard section.fileChecks == .all else { return }
        do throws(RealtimeError) {
            _ = try UDPSocket(boundTo: address)
        } catch {
            problems.append(section.problem("address", "\(error)"))
        }
    }

    private mutating func readCodecs(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        guard let names = section.list("codecs", &problems) else { return }
        let known = SoundCodec.allCases.map(\.rawValue).joined(separator: ", ")
        codecs = []
        for name in names {
            guard let codec = SoundCodec(rawValue: name) else {
                problems.append(section.problem("codecs", "\"\(name)\" is unknown; allowed: \(known)"))
                continue
            }
            if !codecs.contains(codec) { codecs.append(codec) }
        }
        if names.isEmpty { problems.append(section.problem("codecs", "needs at least one of \(known)")) }
    }

    private mutating func readSuites(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        guard let names = section.list("srtp_suites", &problems) else { return }
        let known = SRTPSuite.allCases.map(\.rawValue).joined(separator: ", ")
        suites = names.compactMap { name in
            if let suite = SRTPSuite(rawValue: name) { return suite }
            problems.append(section.problem("srtp_suites", "\"\(name)\" is unknown; allowed: \(known)"))
            return nil
        }
        if names.isEmpty { problems.append(section.problem("srtp_suites", "needs at least one of \(known)")) }
    }
}

extension EncoderSettings {
    mutating func read(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        bitrateBps = section.integer("bitrate_bps", in: 6_000...510_000, &problems) ?? bitrateBps
        complexity = section.integer("complexity", in: 0...10, &problems) ?? complexity
        fec = section.bool("fec", &problems) ?? fec
        expectedLossPercent = section.integer("expected_loss_percent", in: 0...100, &problems) ?? expectedLossPercent
        dtx = section.bool("dtx", &problems) ?? dtx
        if let frame = section.integer("frame_ms", in: 10...60, &problems) {
            if let duration = FrameDuration(rawValue: frame) {
                frameDuration = duration
            } else {
                problems.append(section.problem("frame_ms", "must be 10, 20, 40 or 60, not \(frame)"))
            }
        }
        section.rejectUnknownKeys(
            known: ["bitrate_bps", "complexity", "fec", "expected_loss_percent", "dtx", "frame_ms"], &problems)
    }
}

extension PlayoutConfiguration {
    mutating func read(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        minimumDelayMilliseconds =
            section.integer("min_delay_ms", in: 0...2_000, &problems) ?? minimumDelayMilliseconds
        maximumDelayMilliseconds =
            section.integer("max_delay_ms", in: 20...2_000, &problems) ?? maximumDelayMilliseconds
        if maximumDelayMilliseconds < minimumDelayMilliseconds {
            problems.append(
                section.problem("max_delay_ms", "must not be below min_delay_ms (\(minimumDelayMilliseconds))"))
        }
        section.rejectUnknownKeys(known: ["min_delay_ms", "max_delay_ms"], &problems)
    }
}
