public import CallControl
internal import ConfigReader
public import CallMedia
public import MediaEngine
public import Core
public import AudioKit
public import Playout
internal import Realtime
public import SecureTransport
internal import ICE

/// Sockets, codec and playout of a device.
public struct MediaConfiguration: Sendable {
    /// The address that media sockets are bound to and that offers and answers name; nil, or the wildcard address, leaves
    /// that to ``MediaAddress``.
    public var address: SocketAddress?
    /// The first worker's port; 0 for any.
    public var port: UInt16 = 0
    /// UDP ports of calls without ICE, one each; nil leaves them to the system.
    public var callPorts: ClosedRange<UInt16>?
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
    /// What outgoing calls offer; answers follow the peer's offer.
    public var offers = OfferKind.webRTC
    /// Interfaces that calls may use.
    public var interfaces = InterfaceFilter()
    /// Reach peers only through TURN servers, so that they learn none of our addresses.
    public var usesRelaysOnly = false
    /// STUN and TURN servers besides those that the service names.
    public var iceServers: [CallControl.ICEServer] = []
    /// A PEM file with the certificate authorities for TURN servers over TLS; nil means the system's.
    public var relayTrustRoots: String?
    /// Say yes to media that is not encrypted.
    public var allowsPlainMedia = false
    /// How long nothing may arrive from the peer of a call without ICE, neither RTP nor RTCP, before it is probed over signaling;
    /// nil: it never is.
    public var silenceTimeout: Duration? = .seconds(30)

    /// How outgoing calls are connected.
    public enum OfferKind: String, CaseIterable, Sendable {
        /// By ICE, with keys from DTLS, as browsers do it.
        case webRTC = "webrtc"
        /// To a plain address, with keys in the description (RFC 4568).
        case sdes
        /// To a plain address, without protection; needs ``allowsPlainMedia``.
        case plain
    }

    /// Makes the default configuration.
    ///
    /// At 40 kb/s the encoder expects the least loss at which libopus 1.3 adds in-band FEC: more would not repair more,
    /// and would reduce the quality of calls without loss. At 32 kb/s FEC begins only at 7 %, and speech that is coded
    /// twice, like an echo, is then noticeably worse.
    public init() {
        encoder.bitrateBps = 40_000
        encoder.expectedLossPercent = 5
    }

    static let offersKey = ConfigKey.choice(
        "offers", of: OfferKind.self, "what our own calls offer: `webrtc`, or `sdes` or `plain` for a plain address"
    ).unset("`\(MediaConfiguration().offers.rawValue)`, and `sdes` with `account.kind: sip`")

    /// The keys of the section `media`.
    struct Keys: ConfigKeys {
        private static let usual = MediaConfiguration()

        let address = ConfigKey.parsed(
            "address", "address", "address that media sockets bind to and offers name; 0.0.0.0 binds to all"
        ) {
            host throws(ConfigValueFault) in
            if let address = SocketAddress(host: host, port: 0) { return address }
            throw ConfigValueFault("\"\(host)\" is not an IPv4 or IPv6 address such as 192.0.2.1")
        }.unset("all, or 127.0.0.1 if the exchange is there")
        let port = ConfigKey.integer(
            "port", in: 0...65_535, "the first worker's UDP port, for a firewall rule for calls with ICE; 0 for any"
        ).defaulting(to: Int(usual.port))
        let ports = ConfigKey.parsed(
            "ports", "FIRST-LAST", in: "1024-65535",
            "UDP ports of calls without ICE, one for each call, for a firewall rule; a port rests for 60 s after its call "
                + "([limits.md](limits.md#ports-of-calls-without-ice))",
            show: { "\($0.lowerBound)-\($0.upperBound)" }, MediaConfiguration.ports
        ).unset("any")
        let workers = ConfigKey.integer(
            "workers", in: 1...64,
            "media threads, one for some 70 calls at complexity 5 ([benchmarks.md](benchmarks.md))"
        ).defaulting(to: usual.workers)
        let realtimePriority = ConfigKey.integer(
            "realtime_priority", in: 0...99, "SCHED_FIFO priority of the media threads; 0 does not ask for it"
        ).defaulting(to: Int(usual.realtimePriority ?? 0))
        let offers = MediaConfiguration.offersKey
        let interfaces = ConfigKey.list("interfaces", "use these only; `*` matches any end").unset("all")
        let ignoredInterfaces = ConfigKey.list("ignored_interfaces", "do not use these").unset("none")
        let relayOnly = ConfigKey.bool(
            "relay_only",
            "send and receive media through TURN servers only, so that peers do not learn the device's address"
        ).defaulting(to: usual.usesRelaysOnly)
        let iceServers = ConfigKey.sections(
            "ice_servers", CallControl.ICEServer.Keys.self, "STUN and TURN servers besides those that the service names"
        )
        let relayTrustRoots = ConfigKey.path(
            "relay_trust_roots", readable: true, "PEM certificates to trust for TURN servers over TLS"
        ).unset("the system's")
        let codecs = ConfigKey.choices("codecs", of: SoundCodec.self, "the preferred one first")
            .defaulting(to: usual.codecs)
        let allowPlainRTP = ConfigKey.bool("allow_plain_rtp", "accept media without encryption")
            .defaulting(to: usual.allowsPlainMedia)
        let silenceTimeout = ConfigKey.seconds(
            "silence_timeout_s", in: 0...3_600,
            "after this silence the peer of a call without ICE is probed over signaling; the call ends if the probe fails ([sip.md](sip.md#a-telephone-that-vanishes)); 0 for never"
        ).defaulting(to: usual.silenceTimeout ?? .zero)
        let srtpSuites = ConfigKey.choices(
            "srtp_suites", of: SRTPSuite.self, "suites to offer and to accept, the preferred one first"
        ).defaulting(to: usual.suites)
        let opus = ConfigKey.section("opus", EncoderSettings.Keys.self, "how our Opus is encoded")
        let jitter = ConfigKey.section("jitter", PlayoutConfiguration.Keys.self, "how the peer's audio is played out")
    }

    mutating func read(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        address = section.value(\.address, &problems)
        if let address { Self.bind(address, section, &problems) }
        port = UInt16(section.value(\.port, &problems))
        section.read(\.workers, into: &workers, &problems)
        callPorts = section.value(\.ports, &problems)
        if port != 0, Int(port) + workers - 1 > 65_535 {
            let message =
                "leaves no port for each of the \(workers) workers, which take this one and those that follow it"
            problems.append(section.problem(\.port, message))
        }
        let priority = section.value(\.realtimePriority, &problems)
        realtimePriority = priority == 0 ? nil : Int32(priority)
        checkPorts(section, &problems)
        section.read(\.offers, into: &offers, &problems)
        interfaces.allowed = section.value(\.interfaces, &problems) ?? []
        interfaces.denied = section.value(\.ignoredInterfaces, &problems) ?? []
        usesRelaysOnly = section.value(\.relayOnly, &problems)
        iceServers = (section.value(\.iceServers, &problems) ?? []).compactMap { CallControl.ICEServer($0, &problems) }
        relayTrustRoots = section.certificates(\.relayTrustRoots, &problems)
        allowsPlainMedia = section.value(\.allowPlainRTP, &problems)
        let silence = section.value(\.silenceTimeout, &problems)
        silenceTimeout = silence == .zero ? nil : silence
        if offers == .plain, !allowsPlainMedia {
            problems.append(section.problem(\.offers, "is plain, which needs allow_plain_rtp: true"))
        } else if offers == .plain {
            problems.append(section.warning(\.offers, Self.plainOffers))
        } else if allowsPlainMedia {
            problems.append(section.warning(\.allowPlainRTP, Self.plainAnswers))
        }
        if let opus = section.value(\.opus, &problems) { encoder.read(opus, &problems) }
        if let jitter = section.value(\.jitter, &problems) { playout.read(jitter, &problems) }
        section.read(\.srtpSuites, into: &suites, &problems)
        codecs = Self.distinct(section.value(\.codecs, &problems))
    }

    /// What calls without keys give away.
    private static let exposure =
        "such a call can be intercepted and spoken into on the network, and by a stranger who finds its port while the peer "
        + "sends nothing"
    static let plainOffers =
        "is plain, so that our calls have no keys, though the peer may take them: \(exposure). With offers: sdes, and "
        + "transport: tls to a SIP server, calls with a peer that takes SRTP are protected"
    static let plainAnswers =
        "is true, so that a call whose peer has no keys is taken: \(exposure). Leave it out if all peers take SRTP; a peer that "
        + "offers keys is answered with them in any case"

    /// Reads two port numbers with a hyphen between them.
    private static func ports(_ text: String) throws(ConfigValueFault) -> ClosedRange<UInt16> {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false).map { UInt16($0) }
        guard ends.count == 2, let first = ends[0], let last = ends[1], first >= 1_024, first <= last else {
            throw ConfigValueFault("must be two ports from 1024 to 65535, such as 16384-17383, the lower one first")
        }
        return first...last
    }

    /// The workers' own ports are no call's.
    private func checkPorts(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        guard let callPorts, port != 0 else { return }
        let own = Int(port)..<Int(port) + workers
        if own.overlaps(Int(callPorts.lowerBound)..<Int(callPorts.upperBound) + 1) {
            let message =
                "has the ports of the media workers (port: \(port)); leave out \(own.lowerBound) to \(own.upperBound - 1)"
            problems.append(section.problem(\.ports, message))
        }
    }

    /// Codecs, each only where it is first.
    static func distinct(_ codecs: [SoundCodec]) -> [SoundCodec] {
        codecs.reduce(into: []) { kept, codec in
            if !kept.contains(codec) { kept.append(codec) }
        }
    }

    /// Finds out whether the machine has the address.
    private static func bind(
        _ address: SocketAddress, _ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]
    ) {
        guard section.fileChecks == .all else { return }
        do throws(RealtimeError) {
            _ = try UDPSocket(boundTo: address)
        } catch {
            problems.append(section.problem(\.address, "\(error)"))
        }
    }
}

extension EncoderSettings {
    /// The keys of the section `media.opus`.
    struct Keys: ConfigKeys {
        private static let usual = MediaConfiguration().encoder

        let bitrate = ConfigKey.integer("bitrate_bps", in: 6_000...510_000, unit: "b/s", "the most that is sent")
            .defaulting(to: usual.bitrateBps)
        let complexity = ConfigKey.integer(
            "complexity", in: 0...10, "5 is the knee of quality over cost; with `profile: pi` 3"
        ).defaulting(to: usual.complexity)
        let fec = ConfigKey.bool("fec", "repeat a part of each packet in the next").defaulting(to: usual.fec)
        let expectedLoss = ConfigKey.integer(
            "expected_loss_percent", in: 0...100, unit: "%",
            "0 on networks that lose nothing; the peer's feedback raises it"
        ).defaulting(to: usual.expectedLossPercent)
        let dtx = ConfigKey.bool(
            "dtx", "send nothing in silence; in G.711 a description of the noise"
        ).defaulting(to: usual.dtx)
        let frame = ConfigKey.integer(
            "frame_ms", in: 10...60, unit: "ms", "length of a frame: 10, 20, 40 or 60"
        ).defaulting(to: usual.frameDuration.rawValue)
    }

    mutating func read(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        section.read(\.bitrate, into: &bitrateBps, &problems)
        section.read(\.complexity, into: &complexity, &problems)
        section.read(\.fec, into: &fec, &problems)
        section.read(\.expectedLoss, into: &expectedLossPercent, &problems)
        section.read(\.dtx, into: &dtx, &problems)
        let frame = section.value(\.frame, &problems)
        if let duration = FrameDuration(rawValue: frame) {
            frameDuration = duration
        } else {
            problems.append(section.problem(\.frame, "must be 10, 20, 40 or 60, not \(frame)"))
        }
    }
}

extension PlayoutConfiguration {
    /// The keys of the section `media.jitter`.
    struct Keys: ConfigKeys {
        private static let usual = PlayoutConfiguration()

        let minimumDelay = ConfigKey.integer(
            "min_delay_ms", in: 0...2_000, unit: "ms", "the least delay of the jitter buffer"
        ).defaulting(to: usual.minimumDelayMilliseconds)
        let maximumDelay = ConfigKey.integer(
            "max_delay_ms", in: 20...2_000, unit: "ms", "the greatest; not below `min_delay_ms`"
        ).defaulting(to: usual.maximumDelayMilliseconds)
    }

    mutating func read(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        section.read(\.minimumDelay, into: &minimumDelayMilliseconds, &problems)
        section.read(\.maximumDelay, into: &maximumDelayMilliseconds, &problems)
        if maximumDelayMilliseconds < minimumDelayMilliseconds {
            problems.append(
                section.problem(\.maximumDelay, "must not be below min_delay_ms (\(minimumDelayMilliseconds))"))
        }
    }
}

extension CallControl.ICEServer {
    /// The keys of one of `media.ice_servers`.
    struct Keys: ConfigKeys {
        let urls = ConfigKey.list("urls", of: "URLs", "`stun:HOST:PORT`, `turn:HOST:PORT` or `turns:HOST:PORT`") {
            url throws(ConfigValueFault) in
            if ICEServerLookup.location(url) != nil { return url }
            throw ConfigValueFault("\"\(url)\" is not stun:HOST:PORT, turn:HOST:PORT or turns:HOST:PORT")
        }.required
        let username = ConfigKey.string("username", "for TURN")
        let credential = ConfigKey.secret("credential", "for TURN")
    }

    init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let before = problems.count
        let urls = section.value(\.urls, &problems) ?? []
        if urls.isEmpty, section.has(\.urls), problems.count == before {
            problems.append(section.problem(\.urls, "needs at least one URL"))
        }
        let username = section.value(\.username, &problems)
        let credential = section.value(\.credential, &problems)
        let isOpen = !section.has(\.username) || !(section.has(\.credential) || section.isInTheClear(\.credential))
        if isOpen, urls.contains(where: { ICEServerLookup.location($0)?.scheme.isRelay == true }) {
            // Without both it would be left out.
            problems.append(
                section.problem(\.urls, "names a TURN server, which wants username and credential_file beside it"))
        }
        guard !urls.isEmpty else { return nil }
        self.init(urls: urls, username: username, credential: credential?.revealed)
    }
}
