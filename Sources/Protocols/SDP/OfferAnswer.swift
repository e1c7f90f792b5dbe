/// One side of an offer and an answer about a call's audio (RFC 3264).
///
/// Make an offer and accept its answer, or make an answer to the peer's offer. Randomness, that is keys, SSRC and
/// session id, comes with ``LocalMedia``.
public struct OfferAnswer: Sendable {
    private enum State: Sendable {
        case idle
        /// An offer is out.
        case offered(profile: MediaProfile, keying: LocalKeying)
    }

    private let local: LocalMedia
    private var state: State = .idle
    private var version: UInt64 = 0

    /// Starts with what we bring.
    public init(_ local: LocalMedia) { self.local = local }

    /// Our offer: one audio section with Opus.
    ///
    /// - Throws: ``NegotiationError`` `noAcceptableCrypto` if ``LocalMedia/keying`` allows nothing.
    public mutating func makeOffer() throws(NegotiationError) -> SessionDescription {
        guard let keying = local.keying.first else {
            throw NegotiationError(.noAcceptableCrypto, "No way of protecting media is allowed, and plain RTP neither.")
        }
        var lines: [SDPAttribute] = []
        let profile: MediaProfile
        switch keying {
        case .sdes(let keys):
            guard !keys.isEmpty else {
                throw NegotiationError(.noAcceptableCrypto, "There is no key to offer.")
            }
            profile = .secure
            lines = zip(1..., keys).map { SDPAttribute("crypto", CryptoAttribute(tag: $0, key: $1).text) }
        case .plain:
            profile = .plain
        }
        state = .offered(profile: profile, keying: keying)
        var description = makeDescription()
        description.media = [
            makeSection(
                profile: profile == .secure ? "RTP/SAVP" : "RTP/AVP", payloadType: local.payloadType,
                direction: local.direction, muxes: true, keyLines: lines)
        ]
        return description
    }

    /// Our answer to the peer's offer: the first audio section that we can take, all else refused in its place.
    ///
    /// - Throws: ``NegotiationError`` if there is no such section; it is about the first audio section, then.
    public mutating func makeAnswer(
        to offer: SessionDescription
    ) throws(NegotiationError) -> (description: SessionDescription, audio: NegotiatedAudio) {
        let (index, accepted) = try firstAcceptable(in: offer)
        let section = offer.media[index]
        var description = makeDescription()
        description.media = offer.media.map(Self.refusal)
        description.media[index] = makeSection(
            profile: section.profile, payloadType: Int(accepted.audio.receivePayloadType),
            direction: accepted.audio.direction, muxes: accepted.audio.control == .muxed,
            keyLines: accepted.keyLine.map { [$0] } ?? [])
        if let mid = section.mid { description.media[index].attributes.insert(.init("mid", mid), at: 0) }
        state = .idle
        return (description, accepted.audio)
    }

    /// What the peer's answer to our last offer has settled.
    ///
    /// - Throws: ``NegotiationError`` if it refuses or does not fit. The offer stays out, for a peer may correct itself.
    public mutating func accept(answer: SessionDescription) throws(NegotiationError) -> NegotiatedAudio {
        guard case .offered(let profile, let keying) = state else {
            throw NegotiationError(.nothingOffered, "The peer has answered and nothing was offered.")
        }
        guard answer.media.count == 1, let section = answer.media.first, section.kind == "audio" else {
            throw NegotiationError(
                .answerDoesNotFit, "The peer's answer has not the one audio section that was offered.")
        }
        guard section.port != 0 else { throw NegotiationError(.refused, "The peer has refused the audio.") }
        let answered = MediaProfile(section.profile)
        guard answered == profile else {
            throw NegotiationError(
                .answerDoesNotFit, "The peer has answered with the transport \(quoted(section.profile)), not ours.")
        }
        let opus = try Agreement.opus(in: section, offeredPayloadType: local.payloadType)
        var audio = try Agreement.audio(section, answer, opus, local)
        audio.receivePayloadType = UInt8(truncatingIfNeeded: local.payloadType)
        if case .sdes(let keys) = keying { audio.keying = try SDESAgreement.accept(section, ours: keys) }
        state = .idle
        return audio
    }
}

extension OfferAnswer {
    private struct Accepted {
        var audio: NegotiatedAudio
        var keyLine: SDPAttribute?
    }

    private func firstAcceptable(in offer: SessionDescription) throws(NegotiationError) -> (Int, Accepted) {
        var firstError: NegotiationError?
        for (index, section) in offer.media.enumerated() where section.kind == "audio" && section.port != 0 {
            do throws(NegotiationError) { return (index, try take(section, of: offer)) } catch {
                firstError = firstError ?? error
            }
        }
        throw firstError ?? NegotiationError(.noAudio, "The peer's offer has no audio section.")
    }

    private func take(_ section: MediaSection, of offer: SessionDescription) throws(NegotiationError) -> Accepted {
        let profile = MediaProfile(section.profile)
        if profile == .unsupported {
            throw NegotiationError(
                .unsupportedProfile,
                "The peer offers the transport \(quoted(section.profile)); we have RTP/SAVP with keys in the "
                    + "description.")
        }
        let opus = try Agreement.opus(in: section, offeredPayloadType: nil)
        var audio = try Agreement.audio(section, offer, opus, local)
        // Keys on a plain profile are an offer to protect if we can (RFC 8643).
        let offersKeys = section.attributes.has("crypto")
        var failure: NegotiationError?
        for keying in local.keying {
            switch keying {
            case .sdes(let keys) where profile == .secure || offersKeys:
                do throws(NegotiationError) {
                    let (keying, line) = try SDESAgreement.choose(section, ours: keys)
                    audio.keying = keying
                    return Accepted(audio: audio, keyLine: line)
                } catch {
                    failure = failure ?? error
                }
            case .plain where profile == .plain:
                return Accepted(audio: audio, keyLine: nil)
            case .sdes, .plain:
                continue
            }
        }
        if let failure { throw failure }
        if profile == .plain {
            throw NegotiationError(
                .plainMediaRefused,
                "The peer offers unprotected media, and plain RTP is not allowed here. Let the peer offer RTP/SAVP.")
        }
        throw NegotiationError(
            .noAcceptableCrypto, "The peer offers protected media with keys in the description, which is not allowed.")
    }

    private mutating func makeDescription() -> SessionDescription {
        version += 1
        let address = ConnectionAddress(address: local.address)
        // Session id and version stay within 63 bits, which is what some peers read (RFC 9429 §5.2.1).
        return SessionDescription(
            origin: .init(sessionID: "\(local.sessionID >> 1)", version: "\(version)", address: address),
            connection: address)
    }

    private func makeSection(
        profile: String, payloadType: Int, direction: MediaDirection, muxes: Bool, keyLines: [SDPAttribute]
    ) -> MediaSection {
        var section = MediaSection(
            kind: "audio", port: Int(local.port), profile: profile, formats: ["\(payloadType)"])
        let map = RTPMap(payloadType: payloadType, encoding: "opus", clockRate: 48_000, channels: 2)
        section.attributes.append(.init("rtpmap", map.text))
        let parameters = local.opus.text
        if !parameters.isEmpty { section.attributes.append(.init("fmtp", "\(payloadType) \(parameters)")) }
        section.attributes.append(.init("ptime", "\(local.packetTimeMilliseconds)"))
        section.attributes.append(.init(direction.rawValue))
        if muxes { section.attributes.append(.init("rtcp-mux")) }
        // There is one socket: RTCP comes to it even from a peer that does not multiplex (RFC 3605, RFC 8035).
        section.attributes.append(.init("rtcp", "\(local.port)"))
        section.attributes += keyLines
        section.attributes.append(.init("ssrc", "\(local.ssrc) cname:\(local.canonicalName)"))
        return section
    }

    /// The section with port 0, which refuses it; its formats are repeated for there must be one (RFC 3264 §6).
    private static func refusal(of section: MediaSection) -> MediaSection {
        var refusal = MediaSection(kind: section.kind, port: 0, profile: section.profile, formats: section.formats)
        if let mid = section.mid { refusal.attributes.append(.init("mid", mid)) }
        return refusal
    }
}

/// A peer's word in a sentence: cut short, for it goes into logs.
private func quoted(_ text: String) -> String { "\"\(text.prefix(40))\"" }
