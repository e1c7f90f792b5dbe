internal import Core

/// Transport and profile of a section, as far as they make a difference.
enum MediaProfile: Equatable {
    /// SRTP keyed by DTLS (RFC 5764), over UDP or, if ICE finds no other path, TCP.
    case dtls
    /// SRTP; keyed by the description, or by DTLS if there is a fingerprint, as the first browsers wrote it.
    case secure
    case plain
    case unsupported

    init(_ text: String) {
        self =
            switch text.uppercased() {
            case "UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVP", "TCP/DTLS/RTP/SAVPF", "TCP/DTLS/RTP/SAVP": .dtls
            case "RTP/SAVP", "RTP/SAVPF": .secure
            case "RTP/AVP", "RTP/AVPF": .plain
            default: .unsupported
            }
    }

    /// Feedback may be sent at once (RFC 4585 §3).
    static func hasFeedback(_ text: String) -> Bool { text.uppercased().hasSuffix("AVPF") }
}

/// The parts of an agreement that are read in the same manner from offer and answer.
struct Agreement {
    let view: SectionView
    let local: LocalMedia
    var formats: FormatAgreement
    /// Numbers that our offer gave to header extensions; `nil` when we answer.
    var offeredExtensions: [RTPHeaderExtensionKind: UInt8]?
    var keying: NegotiatedKeying
    /// Whether we nominate, if ICE is used.
    var isControlling: Bool
    /// Whether an offer of ICE may be answered without it.
    var mayLeaveICE = false

    private var section: MediaSection { view.section }

    func audio() throws(NegotiationError) -> NegotiatedAudio {
        let ice = try ice()
        let connection = section.connection ?? view.description.connection
        var route: (remote: MediaEndpoint, control: ControlRoute) = (.unknown, .muxed)
        if ice == nil {
            guard let connection else {
                throw NegotiationError(
                    .unusableAddress, "The peer's description has no address (no \"c=\" line).")
            }
            let remote = try Self.endpoint(connection, section.port)
            route = (remote, try control(connection))
        } else if let connection, SocketAddress(literal: connection.address) != nil,
            let port = UInt16(exactly: section.port),
            port > 0
        {
            route.remote = MediaEndpoint(address: connection.address, port: port)
        }
        let peerDirection = section.direction ?? view.description.direction
        var direction = peerDirection.reversed.intersection(local.direction)
        if ice == nil, connection?.isUnspecified == true { direction = direction.intersection(.recvonly) }
        let packetTime = packetTime()
        let bitrate = BandwidthLimit.payloadBitrate(view, packetTimeMilliseconds: packetTime)
        if bitrate == 0 { direction = direction.intersection(.recvonly) }
        let sources = section.sources
        let profileHasFeedback = MediaProfile.hasFeedback(section.profile)
        return NegotiatedAudio(
            remote: route.remote, control: route.control, codecs: formats.codecs, remoteOpus: formats.remoteOpus,
            redundancy: formats.redundancy, comfortNoise: formats.comfortNoise,
            telephoneEvents: formats.telephoneEvents, packetTimeMilliseconds: packetTime,
            remoteMaximumPacketTimeMilliseconds: maximumPacketTime, remoteMaximumBitrate: bitrate, direction: direction,
            remoteDirection: peerDirection, remoteSources: sources.ssrcs,
            remoteCanonicalName: sources.canonicalName,
            remoteStreams: section.attributes.values("msid").prefix(16).compactMap(MediaStreamName.init(parsing:)),
            mid: section.mid,
            headerExtensions: ExtensionAgreement.common(
                view, ours: local.headerExtensions, offered: offeredExtensions),
            mixesHeaderExtensionForms: !local.headerExtensions.isEmpty && !view.values("extmap-allow-mixed").isEmpty,
            usesReducedSizeRTCP: profileHasFeedback && section.attributes.has("rtcp-rsize"),
            feedback: profileHasFeedback ? feedback() : [], keying: keying,
            remoteTLSID: DTLSAgreement.name(in: view), ice: ice)
    }

    private func ice() throws(NegotiationError) -> NegotiatedICE? {
        guard local.ice != nil, let remote = try ICEAgreement.remote(view) else { return nil }
        guard view.offersRTCPMux else {
            // The common stacks of SIP telephones offer ICE with two components. Without ICE in the answer they send to its address
            // (RFC 8839 §4.2.5), and ours to the offer's.
            if mayLeaveICE, hasAddress { return nil }
            throw NegotiationError(
                .multiplexingNeeded,
                "The peer wants RTCP on a port of its own, and with ICE there is one for both here. Let the peer "
                    + "offer \"rtcp-mux\".")
        }
        return NegotiatedICE(remote: remote, isControlling: isControlling || remote.isLite)
    }

    /// Whether the description has an address to send to without ICE.
    private var hasAddress: Bool {
        guard let connection = section.connection ?? view.description.connection,
            let literal = SocketAddress(literal: connection.address)
        else { return false }
        return !literal.isUnspecified && section.port > 0
    }

    private static func endpoint(
        _ connection: ConnectionAddress, _ port: Int
    ) throws(NegotiationError) -> MediaEndpoint {
        guard let literal = SocketAddress(literal: connection.address), let port = UInt16(exactly: port), port > 0
        else {
            throw NegotiationError(
                .unusableAddress,
                "The peer's address \"\(connection.address.prefix(64))\" is not an IPv4 or IPv6 address.")
        }
        guard !literal.isMulticast else {
            throw NegotiationError(.unusableAddress, "The peer's address is one of multicast; calls are between two.")
        }
        return MediaEndpoint(address: connection.address, port: port)
    }

    /// RTCP shares RTP's port if both sides multiplex; else it goes to the address in `rtcp`, else to the next port
    /// (RFC 3605 §2.1).
    private func control(_ connection: ConnectionAddress) throws(NegotiationError) -> ControlRoute {
        guard !view.offersRTCPMux else { return .muxed }
        if let said = section.rtcpEndpoint {
            return .separate(try Self.endpoint(said.address ?? connection, said.port))
        }
        return .separate(try Self.endpoint(connection, min(section.port + 1, 65_535)))
    }

    /// Kinds of feedback that the peer names for the codec that we send with, or for all.
    private func feedback() -> [RTCPFeedbackKind] {
        guard let number = formats.codecs.first?.payloadTypes.send else { return [] }
        var kinds: Set<String> = []
        for value in section.attributes.values("rtcp-fb").prefix(256) {
            let fields = value.split(separator: " ", omittingEmptySubsequences: true)
            guard fields.count == 2, fields[0] == "*" || fields[0] == "\(number)" else { continue }
            kinds.insert(fields[1].lowercased())
        }
        return local.feedback.filter { kinds.contains($0.rawValue) }
    }

    private var maximumPacketTime: Int? {
        section.maximumPacketTimeMilliseconds ?? formats.remoteOpus.maximumPacketTimeMilliseconds
    }

    /// The longest packet length that does not exceed the peer's request and is not below its minimum.
    private func packetTime() -> Int {
        let opus = formats.remoteOpus
        let limit = maximumPacketTime ?? 120
        let said = section.packetTimeMilliseconds ?? opus.packetTimeMilliseconds
        let preferred = min(said ?? local.packetTimeMilliseconds, limit)
        let floor = min(opus.minimumPacketTimeMilliseconds, limit)
        let ours = [10, 20, 40, 60]
        let chosen = ours.last { $0 <= preferred } ?? 10
        return chosen >= floor ? chosen : ours.first { $0 >= floor } ?? chosen
    }
}

/// The bitrate of payloads that the peer's `b=` lines (RFC 8866 §5.8) permit.
///
/// Of the kinds there are, `TIAS` (RFC 3890) and `AS` count. `CT` does not, because its meaning for a single section is
/// not defined (RFC 9429 §5.10); nor do `RS` and `RR`, which are about RTCP, and unknown kinds.
private enum BandwidthLimit {
    /// Bytes of headers in each packet: IPv4, UDP and RTP, as RFC 9429 §5.10 has them.
    private static let headerBytes = 40

    /// Far above any call; what is beyond limits nothing.
    private static let maximumKilobits = 100_000_000

    /// The highest bitrate that the peer is willing to receive in a section, in bits per second of payloads; 0 if
    /// nothing is to be sent (RFC 3264 §5.1), `nil` without a limit.
    ///
    /// Both the section's limit and the session's apply, so the lower counts. Unreadable values count as absent.
    static func payloadBitrate(_ view: SectionView, packetTimeMilliseconds: Int) -> Int? {
        let levels = [view.section.otherLines, view.description.otherLines]
        return levels.compactMap { limit(in: $0, packetTimeMilliseconds) }.min()
    }

    /// `TIAS` counts payloads alone, and so has priority over `AS`, which includes headers and RTCP: RFC 9429 §5.10
    /// subtracts 5 % for RTCP, and the headers of 50 packets a second; here, the headers of as many packets as are
    /// sent.
    private static func limit(in lines: [SessionDescription.Line], _ packetTimeMilliseconds: Int) -> Int? {
        if let exact = value("TIAS", in: lines, upTo: maximumKilobits * 1_000) { return exact }
        guard let whole = value("AS", in: lines, upTo: maximumKilobits) else { return nil }
        let headers = headerBytes * 8 * 1_000 / max(1, packetTimeMilliseconds)
        // A low limit is not zero: only a written zero stops the sender.
        return whole == 0 ? 0 : max(1, whole * 950 - headers)
    }

    /// The lowest value of a kind, in the unit of that kind.
    private static func value(_ kind: String, in lines: [SessionDescription.Line], upTo limit: Int) -> Int? {
        let values = lines.lazy.filter { $0.type == "b" }.prefix(64).compactMap { line -> Int? in
            let fields = line.value.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard fields.count == 2, fields[0] == kind else { return nil }
            return Digits.number(fields[1], upTo: limit)
        }
        return values.min()
    }
}
