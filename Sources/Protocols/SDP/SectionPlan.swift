internal import Core

/// Our audio section, of an offer or an answer, before it is written.
struct SectionPlan {
    let local: LocalMedia
    /// Our part of ICE, if it is used.
    let ice: LocalICE?
    let keying: LocalKeying
    var numbering = PayloadNumbering()
    var extensions: [RTPHeaderExtensionKind: UInt8] = [:]

    init(local: LocalMedia, ice: LocalICE?, keying: LocalKeying) {
        self.local = local
        self.ice = ice
        self.keying = keying
    }

    /// Numbers every format and extension that we offer; earlier numbers stay.
    mutating func number(after settled: OfferAnswer.Settlement?) {
        numbering = settled?.numbering ?? PayloadNumbering()
        for format in offeredFormats {
            let preferred = format == .codec(.opus) ? local.payloadType : format.usualPayloadType
            _ = numbering.number(for: format, preferred: preferred)
        }
        extensions = ExtensionAgreement.numbers(
            for: local.headerExtensions, agreed: settled?.extensions ?? [:])
    }

    private var offeredFormats: [AudioFormat] {
        var formats: [AudioFormat] = []
        for codec in local.codecs {
            formats.append(.codec(codec))
            if codec == .opus, local.usesRedundancy { formats.append(.redundancy) }
        }
        let hasG711 = local.codecs.contains(.pcmu) || local.codecs.contains(.pcma)
        if local.usesComfortNoise, hasG711 { formats.append(.comfortNoise) }
        if local.telephoneEvents != nil {
            if local.codecs.contains(.opus) { formats.append(.telephoneEvents(48_000)) }
            // Gateways to the telephone network know only these, the default (RFC 4733 §2.1), also together with Opus.
            formats.append(.telephoneEvents(8_000))
        }
        return formats
    }

    /// The section of an offer.
    func offer(mid: String?) throws(NegotiationError) -> MediaSection {
        let formats = offeredFormats.compactMap { format in numbering[format].map { ($0, format) } }
        let profile: String
        let keyLines: [SDPAttribute]
        switch keying {
        case .dtls(let fingerprints, _):
            // Without ICE the peer is no browser, and may know the profile of RFC 5764 §8 alone.
            profile = ice == nil && local.feedback.isEmpty ? "UDP/TLS/RTP/SAVP" : "UDP/TLS/RTP/SAVPF"
            // RFC 8842 §5.2; peers that do not know names ignore it.
            keyLines =
                DTLSAgreement.lines(fingerprints, setup: "actpass")
                + (local.tlsID.map { [SDPAttribute("tls-id", $0)] } ?? [])
        case .sdes(let keys):
            profile = local.feedback.isEmpty ? "RTP/SAVP" : "RTP/SAVPF"
            keyLines = zip(1..., keys).map { SDPAttribute("crypto", CryptoAttribute(tag: $0, key: $1).text) }
        case .plain:
            profile = local.feedback.isEmpty ? "RTP/AVP" : "RTP/AVPF"
            keyLines = []
        }
        let maps = local.headerExtensions.compactMap { kind in
            extensions[kind].map { ExtensionMap(identifier: $0, direction: .sendrecv, kind: kind) }
        }
        return try write(
            profile: profile, formats: formats, mid: mid, direction: local.direction, muxes: true,
            reducesRTCP: ice != nil, keyLines: keyLines, maps: maps, feedback: local.feedback)
    }

    /// The section of an answer.
    func answer(to view: SectionView, _ audio: NegotiatedAudio) throws(NegotiationError) -> MediaSection {
        let codecs = audio.codecs.map { (Int($0.payloadTypes.receive), AudioFormat.codec($0.codec)) }
        var others: [(Int, AudioFormat)] = []
        if let types = audio.redundancy { others.append((Int(types.receive), .redundancy)) }
        if let types = audio.comfortNoise { others.append((Int(types.receive), .comfortNoise)) }
        others += audio.telephoneEvents.map { (Int($0.payloadTypes.receive), .telephoneEvents($0.clockRate)) }
        var keyLines: [SDPAttribute]
        switch (keying, audio.keying) {
        case (.dtls(let fingerprints, _), .dtls(_, let role)):
            keyLines = DTLSAgreement.lines(fingerprints, setup: role.rawValue)
            if audio.remoteTLSID != nil, let name = local.tlsID { keyLines.append(.init("tls-id", name)) }
        case (.sdes(let keys), .sdes):
            keyLines = keys.first.flatMap { SDESAgreement.line(taking: $0, of: view.section) }.map { [$0] } ?? []
        case (.dtls, _), (.sdes, _), (.plain, _): keyLines = []
        }
        let maps = audio.headerExtensions.map {
            ExtensionMap(identifier: $0.identifier, direction: $0.direction, kind: $0.kind)
        }
        return try write(
            profile: view.section.profile, formats: codecs + others, mid: view.section.mid,
            direction: audio.direction, muxes: audio.control == .muxed, reducesRTCP: audio.usesReducedSizeRTCP,
            keyLines: keyLines, maps: maps, feedback: audio.feedback)
    }

    /// The section that lends `ours` its transport, inactive.
    func carrier(_ template: MediaSection, like ours: MediaSection) -> MediaSection {
        var section = template
        section.port = ours.port
        section.connection = ours.connection
        section.attributes += Self.transport(of: ours)
        section.attributes.append(.init(MediaDirection.inactive.rawValue))
        return section
    }

    /// A refused section, with everything that strict peers require even in sections with port 0: an address (RFC 8866
    /// §5.7), credentials and fingerprints.
    func refusal(_ bare: MediaSection, like ours: MediaSection) -> MediaSection {
        guard ice != nil else { return bare }
        var section = bare
        section.connection = ConnectionAddress(address: MediaEndpoint.unknown.address)
        section.attributes += Self.transport(of: ours).filter { $0.name != "candidate" }
        return section
    }

    private static func transport(of section: MediaSection) -> [SDPAttribute] {
        let names: Set = [
            "candidate", "end-of-candidates", "ice-ufrag", "ice-pwd", "ice-options", "fingerprint", "setup", "tls-id",
            "rtcp-mux",
        ]
        return section.attributes.filter { names.contains($0.name) }
    }

    private func write(
        profile: String, formats: [(number: Int, format: AudioFormat)], mid: String?, direction: MediaDirection,
        muxes: Bool, reducesRTCP: Bool, keyLines: [SDPAttribute], maps: [ExtensionMap],
        feedback: [RTCPFeedbackKind]
    ) throws(NegotiationError) -> MediaSection {
        let endpoint = try endpoint()
        var section = MediaSection(
            kind: "audio", port: Int(endpoint.port), profile: profile, formats: formats.map { "\($0.number)" })
        if ice != nil || endpoint.address != local.address {
            section.connection = ConnectionAddress(address: endpoint.address)
        }
        if let mid { section.attributes.append(.init("mid", mid)) }
        if let ice { section.attributes += ICEAgreement.lines(ice) }
        section.attributes += maps.map(\.attribute)
        for (number, format) in formats {
            section.attributes.append(.init("rtpmap", format.map(number).text))
            if let parameters = parameters(format) {
                section.attributes.append(.init("fmtp", "\(number) \(parameters)"))
            }
            guard case .codec = format else { continue }
            section.attributes += feedback.map { .init("rtcp-fb", "\(number) \($0.rawValue)") }
        }
        section.attributes.append(.init("ptime", "\(local.packetTimeMilliseconds)"))
        if let most = local.maximumPacketTimeMilliseconds { section.attributes.append(.init("maxptime", "\(most)")) }
        section.attributes.append(.init(direction.rawValue))
        if muxes { section.attributes.append(.init("rtcp-mux")) }
        if reducesRTCP { section.attributes.append(.init("rtcp-rsize")) }
        // There is one socket: RTCP comes to it even from a peer that does not multiplex. RFC 3605 §2.1 permits this to
        // be signaled; RFC 5761 §5.1.1, as updated by RFC 8035, would require two ports then.
        section.attributes.append(.init("rtcp", "\(endpoint.port)"))
        section.attributes += keyLines
        // Peers that rely on `msid` would take an announced stream for one that is sent.
        if direction.sends, let stream = local.stream {
            section.attributes.append(.init("msid", stream.text(orTrack: local.canonicalName)))
        }
        if direction.sends || ice == nil {
            section.attributes.append(.init("ssrc", "\(local.ssrc) cname:\(local.canonicalName)"))
        }
        return section
    }

    private func parameters(_ format: AudioFormat) -> String? {
        switch format {
        case .codec(.opus): local.opus.text.isEmpty ? nil : local.opus.text
        case .codec, .comfortNoise: nil
        case .redundancy: numbering[.codec(.opus)].map { "\($0)/\($0)" }
        case .telephoneEvents: local.telephoneEvents
        }
    }

    /// The content of the `m=` and `c=` lines.
    private func endpoint() throws(NegotiationError) -> MediaEndpoint {
        let candidate = local.ice.flatMap { ICEAgreement.defaultEndpoint($0.candidates) }
        if ice != nil { return candidate ?? .unknown }
        if local.ice == nil { return MediaEndpoint(address: local.address, port: local.port) }
        // The peer has no ICE, and we had thought it would.
        if SocketAddress(literal: local.address)?.isUnspecified == false {
            return MediaEndpoint(address: local.address, port: local.port)
        }
        guard let candidate else {
            throw NegotiationError(
                .unusableAddress, "The peer has no ICE, and no address of ours is known that it could send to.")
        }
        return candidate
    }
}
