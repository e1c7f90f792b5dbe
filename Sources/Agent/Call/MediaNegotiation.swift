package import AudioKit
package import CallControl
package import CallMedia
package import Core
package import ICE
package import Playout
package import SDP
package import SecureTransport

/// One call's offers and answers: our side, the agreement, and the resulting plans for the media engine.
package struct MediaNegotiation: Sendable {
    private var exchange: OfferAnswer
    private let settings: Settings
    private let randomSeed: UInt64
    private let isBoundToAll: Bool
    /// The host that the peer's newest description came from, where signaling goes from host to host.
    private var signalingSource: SocketAddress?
    /// Our offer was rolled back in favour of the peer's.
    private var hasYielded = false

    /// What a device's calls offer and take.
    package struct Settings: Sendable {
        /// Media that is not encrypted.
        package enum PlainMedia: Sendable {
            case refused
            /// If the peer offers nothing better.
            case accepted
            /// Before all else.
            case offered
        }

        /// Codecs that the call may have, the preferred one first.
        package var codecs = SoundCodec.allCases
        /// How our Opus is encoded.
        package var encoder = EncoderSettings()
        /// How the peer's audio is played out.
        package var playout = PlayoutConfiguration()
        /// Suites to offer, the preferred one first.
        package var suites = SRTPSuite.allCases
        /// Our first offer has ICE and DTLS, as browsers do it, and not a plain address.
        package var offersWebRTC = true
        /// Whether media may go without encryption.
        package var plainMedia = PlainMedia.refused

        /// Makes the settings of a call with WebRTC.
        package init() {}
    }

    /// What the device has for the media of a call.
    package struct Means: Sendable {
        /// Where the call receives media without ICE.
        package var address: SocketAddress
        /// Whether the call receives media at every address of the machine, so that an answer may name another one.
        package var isBoundToAll: Bool
        /// Whether signaling is protected, or stays on this machine: only then may keys travel in it (RFC 4568 §8.3).
        package var keysAllowed: Bool
        /// That of the certificate that is shown in DTLS handshakes.
        package var fingerprint: DTLSFingerprint

        /// Makes them.
        package init(
            address: SocketAddress, isBoundToAll: Bool = false, keysAllowed: Bool, fingerprint: DTLSFingerprint
        ) {
            self.address = address
            self.isBoundToAll = isBoundToAll
            self.keysAllowed = keysAllowed
            self.fingerprint = fingerprint
        }
    }

    /// Prepares a call.
    package init(_ settings: Settings, _ means: Means, using generator: inout some RandomNumberGenerator) {
        self.settings = settings
        isBoundToAll = means.isBoundToAll
        randomSeed = generator.next()
        let handshake = LocalKeying.dtls(fingerprints: [Fingerprint(means.fingerprint)])
        var keying: [LocalKeying] = []
        if settings.offersWebRTC { keying.append(handshake) }
        if means.keysAllowed {
            keying.append(.sdes(settings.suites.compactMap { SDESKey(SRTPKey.random($0, using: &generator)) }))
        }
        if !settings.offersWebRTC { keying.append(handshake) }
        switch settings.plainMedia {
        case .refused: break
        case .accepted: keying.append(.plain)
        case .offered: keying.insert(.plain, at: 0)
        }
        var local = LocalMedia(
            address: means.address.host, port: means.address.port,
            ssrc: UInt32.random(in: 1 ... .max, using: &generator), canonicalName: Self.randomName(using: &generator),
            sessionID: generator.next(), keying: keying)
        local.packetTimeMilliseconds = settings.encoder.frameDuration.rawValue
        local.opus.wantsDTX = settings.encoder.dtx
        local.codecs = settings.codecs.map(AudioCodec.init)
        local.usesRedundancy = true
        local.usesComfortNoise = true
        local.telephoneEvents = "0-16"
        local.headerExtensions = [.audioLevel, .transportSequenceNumber, .mid]
        // Feedback changes the profile of an offer, which plain telephones may not know.
        if settings.offersWebRTC { local.feedback = [.transportWide, .nack] }
        local.mid = "0"
        local.tlsID = Self.randomName(using: &generator)
        local.stream = MediaStreamName(stream: nil, track: nil)
        exchange = OfferAnswer(local)
    }

    /// Brings ICE from the next offer or answer on: the connection's credentials, and the candidates known so far.
    package mutating func bring(_ credentials: ICECredentials, candidates: [String]) {
        exchange.local.ice = LocalICE(
            usernameFragment: credentials.usernameFragment, password: credentials.password, candidates: candidates)
    }

    /// Makes the next offer or answer name the call's own port, for a call without ICE; the chosen host stays.
    ///
    /// - Parameter bound: What the call's sockets are bound to, one for each family of addresses.
    package mutating func receive(atOneOf bound: [SocketAddress]) {
        let isIPv6 = exchange.local.address.contains(":")
        guard let own = bound.first(where: { $0.isIPv6 == isIPv6 }) else { return }
        exchange.local.port = own.port
    }

    /// Whether our first offer has ICE.
    package var offersICE: Bool { settings.offersWebRTC }

    /// Whether our first offer has DTLS, with which media can only be connected by a handshake.
    package var offersHandshake: Bool {
        guard case .dtls? = exchange.local.keying.first else { return false }
        return true
    }

    /// Whether the offer that waits is to be answered with DTLS and without ICE.
    package var needsDirectConnection: Bool {
        guard let audio = exchange.offered, audio.ice == nil, case .dtls = audio.keying else { return false }
        return true
    }

    /// Whether the offer that waits is to be answered without ICE and DTLS, at a port of the call's own.
    package var needsPort: Bool {
        guard let audio = exchange.offered, audio.ice == nil else { return false }
        if case .dtls = audio.keying { return false }
        return true
    }

    /// Whether what was agreed connects as our offer says: by ICE if that has ICE.
    package func isConnectedAsOffered(_ audio: NegotiatedAudio) -> Bool {
        (audio.ice != nil) == (exchange.local.ice != nil)
    }

    /// Brings another DTLS association from the next answer on: the peer begins one (RFC 8842 §5.3).
    package mutating func renewAssociation(using generator: inout some RandomNumberGenerator) {
        exchange.local.tlsID = Self.randomName(using: &generator)
    }

    /// 126 random bits as a word: more than RFC 7022 §4.2 (96) and RFC 8842 §4 (120) require of names.
    private static func randomName(using generator: inout some RandomNumberGenerator) -> String {
        // The top bits are set, so that all have 32 digits; 20 is the least.
        String(generator.next() | 1 << 63, radix: 16) + String(generator.next() | 1 << 63, radix: 16)
    }

    /// Our offer, as an invite carries it.
    package mutating func offer() throws(NegotiationError) -> CallDescription {
        .offer(try exchange.makeOffer().serialized())
    }

    /// Our offer in an established call: all that we can do, connected and carried as the call is.
    package mutating func offerAgain() throws(NegotiationError) -> CallDescription {
        if let agreed, agreed.ice == nil {
            exchange.local.ice = nil
            // A peer that has agreed on no feedback may not know the profiles that have it.
            if agreed.feedback.isEmpty { exchange.local.feedback = [] }
        }
        return try offer()
    }

    /// The host that our address must reach for the peer's offer; nil if our address does not depend on the peer.
    package func hostToReach(for offer: CallDescription) -> SocketAddress? {
        guard isBoundToAll, let text = offer.sdp else { return nil }
        return (try? SessionDescription(parsing: text)).flatMap(Self.mediaHost)
    }

    /// Takes the peer's offer, to be answered next.
    ///
    /// - Parameter source: The address of this machine that reaches ``hostToReach(for:)``; nil keeps the one that is named.
    /// - Returns: In what it differs from what was agreed before.
    package mutating func receive(
        _ offer: CallDescription, reachedFrom source: SocketAddress? = nil
    ) throws -> NegotiationChanges {
        guard case .offer(let sdp) = offer.content else { throw DescriptionError("the peer sent no offer with SDP") }
        let changes = try exchange.receive(offer: try SessionDescription(parsing: sdp))
        noteSource(of: offer)
        // Not the address that reaches the exchange: the peer may be in another network of this machine.
        if let source { exchange.local.address = source.host }
        return changes
    }

    private mutating func noteSource(of description: CallDescription) {
        if let host = description.source { signalingSource = SocketAddress(host: host, port: 0) }
    }

    /// Where a description without ICE wants its sound to be sent; nil if it does not say.
    private static func mediaHost(of description: SessionDescription) -> SocketAddress? {
        let section = description.media.first { $0.kind == "audio" && $0.port != 0 }
        guard let host = (section?.connection ?? description.connection)?.address,
            let address = SocketAddress(host: host, port: 9), !address.isUnspecified
        else { return nil }
        return address
    }

    /// Our answer to the offer that was received, as an accept carries it, and what was agreed.
    package mutating func answer() throws(NegotiationError) -> (CallDescription, NegotiatedAudio) {
        let (description, audio) = try exchange.makeAnswer()
        return (.answer(description.serialized()), audio)
    }

    /// The agreement after the peer's answer, and its differences from the earlier one.
    package mutating func accept(_ answer: CallDescription) throws -> (NegotiatedAudio, NegotiationChanges) {
        guard case .answer(let sdp) = answer.content else { throw DescriptionError("the peer sent no answer with SDP") }
        let before = exchange.agreed
        let audio = try exchange.accept(answer: try SessionDescription(parsing: sdp))
        noteSource(of: answer)
        return (audio, NegotiationChanges(from: before, to: audio))
    }

    /// Takes back our offer, which has crossed one of the peer's that counts.
    package mutating func yield() {
        exchange.rollback()
        hasYielded = true
    }

    /// Takes back our offer, which the peer has refused.
    package mutating func withdraw() { exchange.rollback() }

    /// Whether, now that the peer's offer has been answered, our own is to be made again: true once, and not if the
    /// peer's offer has restarted ICE too, because then nothing is left to do.
    package mutating func takeOwedRestart(after changes: NegotiationChanges) -> Bool {
        defer { hasYielded = false }
        return hasYielded && !changes.contains(.ice)
    }

    /// What is agreed; nil before the first answer.
    package var agreed: NegotiatedAudio? { exchange.agreed }

    /// Whether our offer waits for its answer.
    package var hasOffered: Bool { exchange.state == .haveLocalOffer }

    /// The identifier of the peer's section, for later candidates.
    package var mid: String { exchange.agreed?.mid ?? exchange.local.mid ?? "0" }

    /// How telephone events go to the peer; nil if it takes none.
    package var sentEvents: NegotiatedTelephoneEvents? { exchange.agreed.flatMap { Self.events(for: $0).first } }

    /// Whether an offer has ICE with one port for RTP and RTCP, so that the answer must have it too.
    package static func usesICE(_ offer: CallDescription) -> Bool {
        guard let text = offer.sdp else { return false }
        return (try? SessionDescription(parsing: text))?.offersMuxedICE == true
    }
}

// MARK: Plans

extension MediaNegotiation {
    /// The media worker's plan for what was agreed.
    ///
    /// - Parameter start: When a call without ICE begins to send.
    package func plan(for audio: NegotiatedAudio, audio behaviour: AudioBehaviour, start: MediaCallPlan.Start)
        throws(DescriptionError) -> MediaCallPlan
    {
        let local = exchange.local
        var peer = PeerPlan(
            transport: try transport(for: audio), protection: try protection(for: audio),
            remoteSSRC: audio.remoteSSRC, localSSRC: local.ssrc, canonicalName: local.canonicalName,
            sendPayloadType: audio.sendPayloadType, receivePayloadType: audio.receivePayloadType,
            randomSeed: randomSeed)
        peer.otherReceivePayloadType = audio.ownReceivePayloadType
        peer.clockRate = audio.codec.clockRate
        peer.signalingSource = signalingSource
        let encoder = encoder(for: audio)
        if audio.codec == .opus, let types = audio.redundancy {
            peer.redundancy = RedundancyFormat(
                sendPayloadType: types.send, receivePayloadType: types.receive,
                isSent: Self.hasRoomForCopies(encoder, audio))
        }
        peer.telephoneEvents = Self.eventFormats(for: audio)
        peer.headerExtensions = Self.extensions(for: audio)
        peer.usesReducedSizeRTCP = audio.usesReducedSizeRTCP
        peer.repairsLoss = audio.feedback.contains(.nack)
        if audio.codec != .opus {
            peer.comfortNoisePayloadType = audio.comfortNoise?.receive
            peer.sendComfortNoisePayloadType = audio.comfortNoise?.send
        }
        var plan = MediaCallPlan(
            peer: peer, encoder: encoder, playout: settings.playout, audio: behaviour,
            start: peer.protection == .handshake || audio.ice != nil ? .whenConnected : start)
        plan.codec = SoundCodec(audio.codec)
        return plan
    }

    private static func eventFormats(for audio: NegotiatedAudio) -> [TelephoneEventFormat] {
        events(for: audio).map { events in
            TelephoneEventFormat(
                clockRate: events.clockRate, sendPayloadType: events.payloadTypes.send,
                receivePayloadType: events.payloadTypes.receive)
        }
    }

    /// Telephone events, first those whose clock is the codec's (RFC 4733 §2.1, RFC 7160 §4.1), which are sent.
    private static func events(for audio: NegotiatedAudio) -> [NegotiatedTelephoneEvents] {
        let rate = audio.codec.clockRate
        return audio.telephoneEvents.filter { $0.clockRate == rate }
            + audio.telephoneEvents.filter { $0.clockRate != rate }
    }

    /// The header extensions that are useful to both: packets are numbered only for a peer that reports their arrival,
    /// and the section is named only if a transport may carry several.
    private static func extensions(for audio: NegotiatedAudio) -> HeaderExtensionPlan {
        var plan = HeaderExtensionPlan()
        plan.audioLevelIdentifier = audio.sendIdentifier(.audioLevel)
        if audio.feedback.contains(.transportWide) {
            plan.transportSequenceIdentifier = audio.sendIdentifier(.transportSequenceNumber)
            plan.remoteTransportSequenceIdentifier = audio.receiveIdentifier(.transportSequenceNumber)
        }
        if audio.ice != nil, let mid = audio.mid {
            plan.midIdentifier = audio.sendIdentifier(.mid)
            plan.mid = mid
        }
        return plan
    }

    private func transport(for audio: NegotiatedAudio) throws(DescriptionError) -> PeerPlan.Transport {
        if audio.ice != nil { return .connected }
        if case .dtls = audio.keying { return .handshaken(hasControl: audio.control == .muxed) }
        let remote = try Self.address(of: audio)
        guard case .separate(let control) = audio.control else { return .direct(to: remote) }
        return .direct(to: remote, control: SocketAddress(host: control.address, port: control.port))
    }

    private static func address(of audio: NegotiatedAudio) throws(DescriptionError) -> SocketAddress {
        guard let remote = SocketAddress(host: audio.remote.address, port: audio.remote.port) else {
            throw DescriptionError("the peer's media address \(audio.remote) is no literal IPv4 or IPv6 address")
        }
        return remote
    }

    /// Where the peer wants media without ICE, and its RTCP if elsewhere; nil if it wants none there, as in the hold of RFC 2543.
    package static func addresses(of audio: NegotiatedAudio) -> (remote: SocketAddress, control: SocketAddress?)? {
        guard audio.ice == nil, let remote = SocketAddress(host: audio.remote.address, port: audio.remote.port),
            !remote.isUnspecified
        else { return nil }
        guard case .separate(let control) = audio.control else { return (remote, nil) }
        return (remote, SocketAddress(host: control.address, port: control.port))
    }

    private func protection(for audio: NegotiatedAudio) throws(DescriptionError) -> PeerPlan.Protection {
        switch audio.keying {
        case .dtls: return .handshake
        case .sdes(let send, let receive):
            guard let send = SRTPKey(send), let receive = SRTPKey(receive) else {
                throw DescriptionError("the peer's key has not the length of its suite")
            }
            return .keys(send: send, receive: receive)
        case .plain: return .plain
        }
    }

    /// The peer's parameters for the connection; nil if there is neither ICE nor DTLS, and so no connection.
    package func remote(for audio: NegotiatedAudio) throws -> RemoteConnection? {
        var handshake: (role: SecureTransport.DTLSRole, fingerprints: [DTLSFingerprint])?
        if case .dtls(let fingerprints, let role) = audio.keying {
            handshake = (
                role == .active ? .active : .passive,
                try DTLSFingerprint.all(parsing: fingerprints.map(\.description))
            )
        }
        guard let ice = audio.ice?.remote else {
            guard let handshake else { return nil }
            return RemoteConnection(.direct(try Self.address(of: audio)), handshake: handshake)
        }
        guard let credentials = ICECredentials(usernameFragment: ice.usernameFragment, password: ice.password) else {
            throw DescriptionError("the peer's ICE user name fragment or password is too short, or malformed")
        }
        let candidates = RemoteCandidates(
            credentials: credentials, isLite: ice.isLite, candidates: ice.candidates, hasEnded: ice.hasEnded)
        return RemoteConnection(.ice(candidates), handshake: handshake)
    }

    /// Whether frames may be sent twice within what the peer's description lets through: a copy is as long as its frame,
    /// and has 5 bytes before it and the frame (RFC 2198 §3).
    private static func hasRoomForCopies(_ encoder: EncoderSettings, _ audio: NegotiatedAudio) -> Bool {
        guard let limit = audio.remoteMaximumBitrate else { return true }
        return 2 * encoder.bitrateBps + 5 * 8 * 1_000 / encoder.frameDuration.rawValue <= limit
    }

    /// Our encoder's settings within the limits of the peer (RFC 7587 §6.1, RFC 8866 §5.8).
    private func encoder(for audio: NegotiatedAudio) -> EncoderSettings {
        var encoder = settings.encoder
        let limits = [audio.remoteOpus.maximumAverageBitrate, audio.remoteMaximumBitrate].compactMap(\.self)
        // Opus has no bitrate below 6 kb/s; a peer that wants less gets 6 kb/s.
        if let limit = limits.min() { encoder.bitrateBps = min(encoder.bitrateBps, max(6_000, limit)) }
        encoder.fec = encoder.fec && audio.remoteOpus.usesInbandFEC
        encoder.dtx = encoder.dtx || audio.remoteOpus.wantsDTX
        encoder.constantBitrate = encoder.constantBitrate || audio.remoteOpus.wantsConstantBitrate
        encoder.limitBandwidth(toPlaybackRate: audio.remoteOpus.maximumPlaybackRate)
        if let duration = EncoderSettings.FrameDuration(rawValue: audio.packetTimeMilliseconds) {
            encoder.frameDuration = duration
        }
        return encoder
    }
}

/// A peer's description cannot be used.
package struct DescriptionError: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

extension AudioCodec {
    fileprivate init(_ codec: SoundCodec) {
        switch codec {
        case .opus: self = .opus
        case .pcmu: self = .pcmu
        case .pcma: self = .pcma
        }
    }
}

extension SoundCodec {
    fileprivate init(_ codec: AudioCodec) {
        switch codec {
        case .opus: self = .opus
        case .pcmu: self = .pcmu
        case .pcma: self = .pcma
        }
    }
}

extension Fingerprint {
    fileprivate init(_ fingerprint: DTLSFingerprint) {
        self.init(algorithm: fingerprint.hash.rawValue, bytes: fingerprint.bytes)
    }
}

extension SRTPKey {
    fileprivate init?(_ key: SDESKey) {
        guard let suite = SRTPSuite(rawValue: key.suite.rawValue) else { return nil }
        self.init(suite: suite, keyAndSalt: key.material)
    }
}

extension SDESKey {
    fileprivate init?(_ key: SRTPKey) {
        guard let suite = SDESSuite(rawValue: key.suite.rawValue) else { return nil }
        self.init(suite: suite, material: key.keyAndSalt)
    }
}
