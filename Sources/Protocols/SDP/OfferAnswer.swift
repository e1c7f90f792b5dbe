/// One side of the offers and answers about a call's audio (RFC 3264), written as browsers do it (RFC 9429).
///
/// Make an offer and accept its answer, or make an answer to the peer's offer, again and again while the call lasts.
/// All random values (keys, credentials, SSRC and session id) are part of ``local``. A call in the wrong order throws
/// and changes nothing. If offers cross, the caller decides which side yields: that side calls ``rollback()``.
public struct OfferAnswer: Sendable {
    /// The state of the offer/answer exchange (RFC 9429 §3.2).
    public enum State: Equatable, Sendable {
        /// Nothing is open.
        case stable
        /// Our offer is out.
        case haveLocalOffer
        /// The peer's offer waits for our answer.
        case haveRemoteOffer
    }

    private enum Stage: Sendable {
        case stable
        case offered(PendingOffer)
        case received(SessionDescription)
    }

    /// The input of the next offer or answer. Between two of them it may change: direction for hold and resume, new ICE
    /// credentials to restart ICE, new candidates as they are found. SSRC and session id stay.
    public var local: LocalMedia
    private var stage: Stage = .stable
    /// The result of the last offer and answer.
    private var settled: Settlement?
    /// Payload types in our last offer, even if it was refused or taken back.
    private var offeredNumbers: PayloadNumbering?
    private var version: UInt64 = 0

    /// Starts with our side.
    public init(_ local: LocalMedia) { self.local = local }

    /// The state of the exchange.
    public var state: State {
        switch stage {
        case .stable: .stable
        case .offered: .haveLocalOffer
        case .received: .haveRemoteOffer
        }
    }

    private var reader: DescriptionReader {
        DescriptionReader(local: local, settled: settled, offeredNumbers: offeredNumbers)
    }

    /// The present agreement; `nil` before the first answer.
    public var agreed: NegotiatedAudio? { settled?.audio }

    /// Our offer: one audio section, and at their positions those that an earlier exchange has refused.
    ///
    /// An offer that is still out is replaced.
    /// - Throws: ``NegotiationError`` `noAcceptableCrypto` if ``LocalMedia/keying`` allows nothing, `unusableAddress`
    ///   without a local address, `wrongState` if the peer's offer waits for an answer.
    public mutating func makeOffer() throws(NegotiationError) -> SessionDescription {
        if case .received = stage {
            throw NegotiationError(.wrongState, "The peer's offer waits for an answer; no other can be made before.")
        }
        let keying = try reader.offeredKeying()
        var plan = SectionPlan(local: local, ice: local.ice, keying: keying)
        plan.number(after: settled)
        let section = try plan.offer(mid: settled.map(\.mid) ?? local.mid)
        var description = makeDescription(ice: local.ice != nil)
        let index = settled?.index ?? 0
        description.media = settled?.refusals.map { plan.refusal($0, like: section) } ?? [section]
        description.media[index] = section
        let carrier = settled?.carrier
        if let carrier { description.media[carrier.index] = plan.carrier(carrier.template, like: section) }
        if local.ice != nil { bundle([carrier?.template.mid, section.mid], in: &description) }
        if !local.headerExtensions.isEmpty { description.attributes.append(.init("extmap-allow-mixed")) }
        offeredNumbers = plan.numbering
        stage = .offered(
            PendingOffer(
                keying: keying, ice: local.ice, numbering: plan.numbering, extensions: plan.extensions,
                index: index, carrier: settled?.carrier, sections: description.media))
        return description
    }

    /// Takes the peer's offer, to be answered later; it is read in full, so that what is wrong shows at once.
    ///
    /// - Returns: In what it differs from what is agreed. With ``NegotiationChanges/ice`` the peer restarts ICE, and
    ///   ``local`` needs new credentials before ``makeAnswer()``.
    /// - Throws: ``NegotiationError`` if no section can be taken, `wrongState` if our own offer is out.
    @discardableResult
    public mutating func receive(offer: SessionDescription) throws(NegotiationError) -> NegotiationChanges {
        if case .offered = stage {
            throw NegotiationError(.wrongState, "The offers have crossed; one side must take its own back.")
        }
        let accepted = try reader.firstAcceptable(in: offer)
        stage = .received(offer)
        return NegotiationChanges(from: settled?.audio, to: accepted.audio)
    }

    /// The result that an answer to the pending offer would have, with the present ``local``; `nil` if none is pending.
    public var offered: NegotiatedAudio? {
        guard case .received(let offer) = stage else { return nil }
        return try? reader.firstAcceptable(in: offer).audio
    }

    /// Our answer to the offer that was received: the first audio section that we support; all others are refused.
    ///
    /// - Throws: ``NegotiationError`` `nothingOffered` without an offer, `staleICECredentials` if the peer has
    ///   restarted ICE and our credentials are still the old ones. The offer continues to wait.
    public mutating func makeAnswer() throws(NegotiationError) -> (
        description: SessionDescription, audio: NegotiatedAudio
    ) {
        guard case .received(let offer) = stage else {
            throw NegotiationError(.nothingOffered, "There is no offer to answer.")
        }
        let accepted = try reader.firstAcceptable(in: offer)
        try reader.requireFreshCredentials(accepted.audio)
        let view = SectionView(offer.media[accepted.index], of: offer)
        var plan = SectionPlan(
            local: local, ice: accepted.audio.ice == nil ? nil : local.ice, keying: accepted.localKeying)
        plan.numbering = accepted.numbering
        let section = try plan.answer(to: view, accepted.audio)
        var description = makeDescription(ice: plan.ice != nil)
        description.media = offer.media.map { plan.refusal(Self.refusal(of: $0), like: section) }
        description.media[accepted.index] = section
        let carrier = Carrier(for: view, in: offer)
        if let carrier { description.media[carrier.index] = plan.carrier(carrier.template, like: section) }
        if let mid = section.mid, offer.bundle(with: mid) != nil {
            bundle([carrier?.template.mid, mid], in: &description)
        }
        if accepted.audio.mixesHeaderExtensionForms { description.attributes.append(.init("extmap-allow-mixed")) }
        settle(
            accepted.audio, with: offer.origin, accepted.numbering, index: accepted.index, carrier: carrier,
            sections: description.media)
        return (description, accepted.audio)
    }

    /// ``receive(offer:)`` and ``makeAnswer()`` in one. If either throws, nothing has changed.
    public mutating func makeAnswer(
        to offer: SessionDescription
    ) throws(NegotiationError) -> (description: SessionDescription, audio: NegotiatedAudio) {
        let before = stage
        try receive(offer: offer)
        do throws(NegotiationError) { return try makeAnswer() } catch {
            stage = before
            throw error
        }
    }

    /// What the peer's answer to our offer has settled.
    ///
    /// - Throws: ``NegotiationError`` if it refuses or does not fit. The offer stays pending, because a peer may
    ///   correct itself.
    public mutating func accept(answer: SessionDescription) throws(NegotiationError) -> NegotiatedAudio {
        guard case .offered(let offer) = stage else {
            throw NegotiationError(.nothingOffered, "The peer has answered and nothing was offered.")
        }
        let (audio, numbering) = try reader.audio(of: answer, to: offer)
        settle(
            audio, with: answer.origin, numbering, index: offer.index, carrier: offer.carrier, sections: offer.sections)
        return audio
    }

    /// Rolls back the pending offer, local or remote: the earlier agreement continues (RFC 9429 §4.1.10.2).
    ///
    /// New ICE credentials of that offer are replaced by the earlier ones; restart again after the exchange.
    public mutating func rollback() {
        if let before = settled?.ice, before.usernameFragment != local.ice?.usernameFragment { local.ice = before }
        stage = .stable
    }
}

extension OfferAnswer {
    private mutating func makeDescription(ice: Bool) -> SessionDescription {
        version += 1
        // With ICE the address is not used, so it need not reveal ours (RFC 9429 §5.2.1).
        let address = ConnectionAddress(address: ice ? MediaEndpoint.unknown.address : local.address)
        // Session id and version stay within 63 bits, which is what some peers read (RFC 9429 §5.2.1).
        return SessionDescription(
            origin: .init(sessionID: "\(local.sessionID >> 1)", version: "\(version)", address: address),
            connection: ice ? nil : address)
    }

    /// The agreement, and the parts of it that the next exchange depends on.
    struct Settlement: Sendable {
        var audio: NegotiatedAudio
        /// The peer's session.
        var peer: SessionDescription.Origin
        var numbering: PayloadNumbering
        var extensions: [RTPHeaderExtensionKind: UInt8]
        /// Our ICE at that time.
        var ice: LocalICE?
        var index: Int
        var carrier: Carrier?
        var mid: String?
        /// All sections, refused, the local one too: the agreed section replaces it at `index`.
        var refusals: [MediaSection]
    }

    /// An offer that is out.
    struct PendingOffer: Sendable {
        var keying: LocalKeying
        var ice: LocalICE?
        var numbering: PayloadNumbering
        var extensions: [RTPHeaderExtensionKind: UInt8]
        var index: Int
        var carrier: Carrier?
        var sections: [MediaSection]
    }

    private mutating func settle(
        _ audio: NegotiatedAudio, with peer: SessionDescription.Origin, _ numbering: PayloadNumbering, index: Int,
        carrier: Carrier?,
        sections: [MediaSection]
    ) {
        var extensions = settled?.extensions ?? [:]
        for use in audio.headerExtensions {
            for (other, taken) in extensions where taken == use.identifier { extensions[other] = nil }
            extensions[use.kind] = use.identifier
        }
        settled = Settlement(
            audio: audio, peer: peer, numbering: numbering, extensions: extensions, ice: local.ice, index: index,
            carrier: carrier, mid: sections[index].mid, refusals: sections.map(Self.refusal))
        stage = .stable
    }

    /// Formats that a refused section repeats: one is needed (RFC 3264 §6), and none is used. The bound keeps the answer
    /// to an offer of many sections within one message.
    private static var maximumRefusedFormats: Int { 16 }

    /// The section with port 0, which refuses it. It repeats formats with their maps, because peers such as Pion read
    /// the formats of a refused section, too, and fail on a number that has no map.
    static func refusal(of section: MediaSection) -> MediaSection {
        let formats = Array(section.formats.prefix(maximumRefusedFormats))
        var refusal = MediaSection(kind: section.kind, port: 0, profile: section.profile, formats: formats)
        if refusal.formats.isEmpty { refusal.formats = ["0"] }
        if let mid = section.mid { refusal.attributes.append(.init("mid", mid)) }
        let maps = section.attributes.values("rtpmap").prefix(128).compactMap(RTPMap.init(parsing:))
        for format in formats {
            guard let map = maps.first(where: { "\($0.payloadType)" == format }) else { continue }
            refusal.attributes.append(.init("rtpmap", map.text))
        }
        return refusal
    }

    /// Sections that share one transport, the one that it belongs to first (RFC 9143 §7.2).
    private func bundle(_ mids: [String?], in description: inout SessionDescription) {
        let mids = mids.compactMap(\.self)
        guard !mids.isEmpty else { return }
        description.attributes.append(.init("group", "BUNDLE \(mids.joined(separator: " "))"))
    }
}

/// Another section whose transport the local one must use: the local one was offered without a transport
/// (`bundle-only`, RFC 9143 §6), or with the same. A refusal would remove the transport, so the section is answered as
/// inactive.
struct Carrier: Sendable {
    var index: Int
    /// The section with its formats and their attributes, and no more.
    var template: MediaSection

    init?(for view: SectionView, in offer: SessionDescription) {
        guard let transport = view.transport, transport.port != 0,
            view.section.port == 0 || view.section.iceUsernameFragment == transport.iceUsernameFragment,
            transport.kind == "audio" || transport.kind == "video",
            let index = offer.media.firstIndex(where: { $0.mid == transport.mid })
        else { return nil }
        self.index = index
        template = MediaSection(
            kind: transport.kind, port: 9, profile: transport.profile, formats: transport.formats)
        template.attributes = transport.attributes.filter { ["mid", "rtpmap", "fmtp"].contains($0.name) }
    }
}
