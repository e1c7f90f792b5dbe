internal import JSON
internal import MediaEngine
internal import Datagrams
internal import OpusCodec
internal import Peering
internal import SDP
internal import SecureTransport

/// One call's offer and answer: what we bring, what was agreed, and the plan that follows for the media worker.
struct MediaNegotiation {
    private var exchange: OfferAnswer
    private let local: LocalMedia
    private let configuration: MediaConfiguration
    private let randomSeed: UInt64

    /// Prepares a call.
    ///
    /// - Parameters:
    ///   - address: Where the call receives media.
    ///   - keysAllowed: Whether signaling is protected, or stays on this machine: only then may keys travel in it
    ///     (RFC 4568 §7).
    init(
        _ configuration: MediaConfiguration, address: SocketAddress, keysAllowed: Bool,
        using generator: inout some RandomNumberGenerator
    ) {
        self.configuration = configuration
        randomSeed = generator.next()
        var keying: [LocalKeying] = []
        if keysAllowed {
            keying.append(.sdes(configuration.suites.compactMap { SDESKey(SRTPKey.random($0, using: &generator)) }))
        }
        if configuration.allowsPlainMedia { keying.append(.plain) }
        var local = LocalMedia(
            address: address.host, port: address.port, ssrc: UInt32.random(in: 1 ... .max, using: &generator),
            canonicalName: String(generator.next(), radix: 36), sessionID: generator.next(), keying: keying)
        local.packetTimeMilliseconds = configuration.encoder.frameDuration.rawValue
        local.opus.wantsDTX = configuration.encoder.dtx
        self.local = local
        exchange = OfferAnswer(local)
    }

    /// Our offer, as an invite carries it.
    mutating func offer() throws(NegotiationError) -> JSONValue {
        Self.value("offer", try exchange.makeOffer())
    }

    /// Our answer to an offer, as an accept carries it, and what was agreed.
    mutating func answer(to offer: JSONValue) throws -> (JSONValue, NegotiatedAudio) {
        let (description, audio) = try exchange.makeAnswer(to: try Self.description(in: offer, "offer"))
        return (Self.value("answer", description), audio)
    }

    /// What the peer's answer has settled.
    mutating func accept(_ answer: JSONValue) throws -> NegotiatedAudio {
        try exchange.accept(answer: try Self.description(in: answer, "answer"))
    }

    /// The media worker's plan for what was agreed.
    func plan(for audio: NegotiatedAudio, audio behaviour: AudioBehaviour, start: MediaCallPlan.Start)
        throws(DescriptionError) -> MediaCallPlan
    {
        guard let remote = SocketAddress(host: audio.remote.address, port: audio.remote.port) else {
            throw DescriptionError("the peer's media address \(audio.remote) is no literal IPv4 or IPv6 address")
        }
        var peer = PeerPlan(
            remoteAddress: remote, remoteSSRC: audio.remoteSSRC, localSSRC: local.ssrc,
            canonicalName: local.canonicalName, sendPayloadType: audio.sendPayloadType,
            receivePayloadType: audio.receivePayloadType, sendKey: nil, receiveKey: nil, randomSeed: randomSeed)
        if case .sdes(let send, let receive) = audio.keying {
            (peer.sendKey, peer.receiveKey) = (SRTPKey(send), SRTPKey(receive))
        }
        if case .separate(let control) = audio.control {
            peer.remoteControlAddress = SocketAddress(host: control.address, port: control.port)
        }
        return MediaCallPlan(
            peer: peer, encoder: encoder(for: audio), playout: configuration.playout, audio: behaviour, start: start)
    }

    /// Our encoder's settings within what the peer wishes to receive (RFC 7587 §6.1).
    private func encoder(for audio: NegotiatedAudio) -> EncoderSettings {
        var encoder = configuration.encoder
        if let limit = audio.remoteOpus.maximumAverageBitrate { encoder.bitrateBps = min(encoder.bitrateBps, limit) }
        encoder.fec = encoder.fec && audio.remoteOpus.usesInbandFEC
        encoder.dtx = encoder.dtx || audio.remoteOpus.wantsDTX
        if let duration = EncoderSettings.FrameDuration(rawValue: audio.packetTimeMilliseconds) {
            encoder.frameDuration = duration
        }
        return encoder
    }

    private static func value(_ type: String, _ description: SessionDescription) -> JSONValue {
        ["type": .string(type), "sdp": .string(description.serialized())]
    }

    private static func description(in value: JSONValue, _ type: String) throws -> SessionDescription {
        guard value["type"]?.string == type, let text = value["sdp"]?.string else {
            throw DescriptionError("the peer's \(type) is not an object with type \"\(type)\" and sdp")
        }
        return try SessionDescription(parsing: text)
    }
}

/// A peer's description cannot be used.
struct DescriptionError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
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
