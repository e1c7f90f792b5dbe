/// Reads the peer's offers and answers: what of them one side takes, with its present media and what was settled before.
struct DescriptionReader {
    struct Accepted {
        var index: Int
        var audio: NegotiatedAudio
        var numbering: PayloadNumbering
        /// Our keys or parameters that protect the section.
        var localKeying: LocalKeying
    }

    let local: LocalMedia
    /// The result of the last offer and answer.
    let settled: OfferAnswer.Settlement?
    /// Payload types in our last offer, even if it was refused or taken back.
    let offeredNumbers: PayloadNumbering?

    func firstAcceptable(in offer: SessionDescription) throws(NegotiationError) -> Accepted {
        guard offer.media.count <= Self.maximumSections else {
            throw NegotiationError(
                .tooManySections,
                "The peer offers \(offer.media.count) sections, and an answer has \(Self.maximumSections) at most.")
        }
        var firstError: NegotiationError?
        // The section that carries the call keeps it, even if other sections have audio.
        var order = Array(offer.media.indices)
        if let current = settled?.index, order.contains(current) {
            order.removeAll { $0 == current }
            order.insert(current, at: 0)
        }
        for index in order where offer.media[index].kind == "audio" {
            let view = SectionView(offer.media[index], of: offer)
            guard view.isOffered else { continue }
            do throws(NegotiationError) { return try take(view, index) } catch {
                firstError = firstError ?? error
            }
        }
        throw firstError ?? NegotiationError(.noAudio, "The peer's offer has no audio section.")
    }

    /// Sections of an offer. Each must be answered (RFC 3264 §6), and the answer must fit in one message of signaling.
    private static var maximumSections: Int { 64 }

    private func take(_ view: SectionView, _ index: Int) throws(NegotiationError) -> Accepted {
        let section = view.section
        if MediaProfile(section.profile) == .unsupported {
            throw NegotiationError(
                .unsupportedProfile, "The peer offers the transport \(quoted(section.profile)), which we do not have.")
        }
        let formats = try FormatAgreement.choose(
            view, local: local, numbering: settled?.numbering ?? PayloadNumbering())
        let (keying, localKeying) = try chooseKeying(view)
        let agreement = Agreement(
            view: view, local: local, formats: formats, keying: keying,
            isControlling: settled?.audio.ice?.isControlling ?? false, mayLeaveICE: settled?.audio.ice == nil)
        var audio = try agreement.audio()
        audio.ownReceivePayloadType = ownNumber(beside: audio)
        return Accepted(index: index, audio: audio, numbering: formats.numbering, localKeying: localKeying)
    }

    /// The payload type of the codec in our last offer, or the one that it would have had, if no other format uses it
    /// now.
    private func ownNumber(beside audio: NegotiatedAudio) -> UInt8? {
        let usual = audio.codec == .opus ? local.payloadType : nil
        guard let own = (offeredNumbers?[.codec(audio.codec)] ?? usual).flatMap(UInt8.init(exactly:)) else {
            return nil
        }
        let companions = [audio.redundancy, audio.comfortNoise].compactMap { $0?.receive }
        let taken =
            audio.codecs.map(\.payloadTypes.receive) + companions + audio.telephoneEvents.map(\.payloadTypes.receive)
        return taken.contains(own) ? nil : own
    }

    /// The first of our kinds of protection that the section has too, and the lines that accept it. A kind that was
    /// agreed before is kept, because a running stream cannot change it.
    private func chooseKeying(
        _ view: SectionView
    ) throws(NegotiationError) -> (keying: NegotiatedKeying, local: LocalKeying) {
        let profile = MediaProfile(view.section.profile)
        let offersDTLS = profile == .dtls || view.transportHas("fingerprint")
        // Keys on a plain profile are an offer to protect if we can (RFC 8643).
        let offersKeys = profile == .secure && !offersDTLS || view.section.attributes.has("crypto")
        var failure: NegotiationError?
        for ours in local.keying where settled.map({ ours.isOfKind($0.audio.keying) }) ?? true {
            do throws(NegotiationError) {
                switch ours {
                case .dtls(_, let role) where offersDTLS:
                    let chosen = try DTLSAgreement.choose(
                        view, preferring: role, current: association(with: view))
                    return (.dtls(remote: chosen.remote, role: chosen.role), ours)
                case .sdes(let keys) where offersKeys && profile != .dtls:
                    let (keying, taken) = try SDESAgreement.choose(view.section, ours: keys)
                    return (keying, .sdes([taken]))
                case .plain where profile == .plain:
                    return (.plain, ours)
                case .dtls, .sdes, .plain:
                    continue
                }
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
        let refusal = Self.refusedProtection(profile, view.section.profile)
        guard settled != nil else { throw refusal }
        throw NegotiationError(
            refusal.code,
            "The peer offers the transport \(quoted(view.section.profile)) without the protection that the call has, and a "
                + "call keeps it to its end. Let the peer keep its kind of protection, or begin another call.")
    }

    /// The existing DTLS association with the creator of a description, unless the description starts another.
    private func association(with view: SectionView) -> DTLSAgreement.Association? {
        let origin = view.description.origin
        guard let settled, case .dtls(let remote, let role) = settled.audio.keying,
            settled.peer.sessionID == origin.sessionID, settled.peer.username == origin.username,
            !DTLSAgreement.differs(settled.audio.remoteTLSID, DTLSAgreement.name(in: view))
        else { return nil }
        return .init(remote: remote, role: role)
    }

    private static func refusedProtection(_ profile: MediaProfile, _ text: String) -> NegotiationError {
        switch profile {
        case .plain:
            NegotiationError(
                .plainMediaRefused,
                "The peer offers unprotected media, and plain RTP is not allowed here. Let the peer offer RTP/SAVP.")
        case .dtls:
            NegotiationError(
                .unsupportedProfile, "The peer offers the transport \(quoted(text)), and DTLS is not allowed here.")
        case .secure, .unsupported:
            NegotiationError(
                .noAcceptableCrypto,
                "The peer offers protected media with keys in the description, which is not allowed.")
        }
    }

    func requireFreshCredentials(_ audio: NegotiatedAudio) throws(NegotiationError) {
        guard let before = settled, let old = before.audio.ice?.remote, let new = audio.ice?.remote,
            old.usernameFragment != new.usernameFragment || old.password != new.password
        else { return }
        guard before.ice?.usernameFragment != local.ice?.usernameFragment else {
            throw NegotiationError(
                .staleICECredentials, "The peer restarts ICE, and the answer needs new credentials of ours.")
        }
    }

    /// What an answer to our offer settles.
    func audio(
        of answer: SessionDescription, to offer: OfferAnswer.PendingOffer
    ) throws(NegotiationError) -> (NegotiatedAudio, PayloadNumbering) {
        guard answer.media.count == offer.sections.count, answer.media[offer.index].kind == "audio" else {
            throw NegotiationError(
                .answerDoesNotFit, "The peer's answer has not the sections that were offered, one audio among them.")
        }
        let view = SectionView(answer.media[offer.index], of: answer)
        guard view.section.port != 0 else { throw NegotiationError(.refused, "The peer has refused the audio.") }
        let keying = try acceptKeying(view, offer)
        var local = local
        local.ice = offer.ice
        let formats = try FormatAgreement.accept(view, local: local, numbering: offer.numbering)
        let agreement = Agreement(
            view: view, local: local, formats: formats, offeredExtensions: offer.extensions, keying: keying,
            isControlling: settled?.audio.ice?.isControlling ?? true)
        var audio = try agreement.audio()
        // An answer may omit the name, which only means that it does not bundle.
        audio.mid = offer.sections[offer.index].mid
        return (audio, formats.numbering)
    }

    private func acceptKeying(
        _ view: SectionView, _ offer: OfferAnswer.PendingOffer
    ) throws(NegotiationError) -> NegotiatedKeying {
        let answered = MediaProfile(view.section.profile)
        let fits: Bool
        switch offer.keying {
        // Older servers answer with the older name of the same.
        case .dtls: fits = answered == .dtls || answered == .secure
        case .sdes: fits = answered == .secure
        case .plain: fits = answered == .plain
        }
        guard fits else {
            throw NegotiationError(
                .answerDoesNotFit,
                "The peer has answered with the transport \(quoted(view.section.profile)), not ours.")
        }
        switch offer.keying {
        case .dtls:
            let chosen = try DTLSAgreement.accept(view, current: association(with: view))
            return .dtls(remote: chosen.remote, role: chosen.role)
        case .sdes(let keys): return try SDESAgreement.accept(view.section, ours: keys)
        case .plain: return .plain
        }
    }

    /// The first kind of protection that is allowed; one that was agreed before is kept.
    func offeredKeying() throws(NegotiationError) -> LocalKeying {
        let kept = settled.flatMap { settled in local.keying.first { $0.isOfKind(settled.audio.keying) } }
        guard let keying = kept ?? local.keying.first else {
            throw NegotiationError(
                .noAcceptableCrypto, "No way of protecting media is allowed, and plain RTP neither.")
        }
        switch keying {
        case .sdes(let keys) where keys.isEmpty:
            throw NegotiationError(.noAcceptableCrypto, "There is no key to offer.")
        case .dtls(let fingerprints, _) where fingerprints.isEmpty:
            throw NegotiationError(.noAcceptableCrypto, "There is no fingerprint of a certificate to offer.")
        case .dtls, .sdes, .plain: return keying
        }
    }
}

extension LocalKeying {
    fileprivate func isOfKind(_ agreed: NegotiatedKeying) -> Bool {
        switch (self, agreed) {
        case (.dtls, .dtls), (.sdes, .sdes), (.plain, .plain): true
        case (.dtls, _), (.sdes, _), (.plain, _): false
        }
    }
}
