/// Transport and profile of a section, as far as they make a difference.
enum MediaProfile: Equatable {
    case secure
    case plain
    case unsupported

    init(_ text: String) {
        self =
            switch text.uppercased() {
            case "RTP/SAVP", "RTP/SAVPF": .secure
            case "RTP/AVP", "RTP/AVPF": .plain
            default: .unsupported
            }
    }
}

/// The parts of an agreement that offer and answer are read for alike.
enum Agreement {
    /// Opus as a section has it.
    struct Opus {
        var payloadType: UInt8
        var parameters: OpusParameters
    }

    /// The first Opus of the section.
    ///
    /// - Parameter offeredPayloadType: In an answer, the number we offered: its map may be left out.
    static func opus(in section: MediaSection, offeredPayloadType: Int?) throws(NegotiationError) -> Opus {
        for format in section.formats {
            guard let number = Decimal.integer(format, upTo: 127) else { continue }
            let isOpus = section.rtpMap(number)?.isOpus ?? (number == offeredPayloadType)
            guard isOpus else { continue }
            return Opus(
                payloadType: UInt8(truncatingIfNeeded: number),
                parameters: OpusParameters(parsing: section.formatParameters(number) ?? ""))
        }
        let names = section.formats.compactMap { Decimal.integer($0, upTo: 127).flatMap(section.rtpMap)?.encoding }
        let listed = names.isEmpty ? "" : " It has \(names.prefix(8).joined(separator: ", ").prefix(120))."
        throw NegotiationError(.noCommonCodec, "The peer has no Opus (opus/48000/2).\(listed)")
    }

    /// Everything but the keys.
    static func audio(
        _ section: MediaSection, _ description: SessionDescription, _ opus: Opus, _ local: LocalMedia
    ) throws(NegotiationError) -> NegotiatedAudio {
        guard let connection = section.connection ?? description.connection else {
            throw NegotiationError(.unusableAddress, "The peer's description has no address (no \"c=\" line).")
        }
        let remote = try endpoint(connection, section.port)
        let peerDirection = section.direction ?? description.direction
        var direction = peerDirection.reversed.intersection(local.direction)
        if connection.isUnspecified { direction = direction.intersection(.recvonly) }
        let source = section.source
        return NegotiatedAudio(
            remote: remote, control: try control(section, connection), sendPayloadType: opus.payloadType,
            receivePayloadType: opus.payloadType, remoteOpus: opus.parameters,
            packetTimeMilliseconds: packetTime(section, opus.parameters, local), direction: direction,
            remoteSSRC: source?.ssrc, remoteCanonicalName: source?.canonicalName, keying: .plain)
    }

    private static func endpoint(
        _ connection: ConnectionAddress, _ port: Int
    ) throws(NegotiationError) -> MediaEndpoint {
        guard let literal = IPLiteral(connection.address), let port = UInt16(exactly: port), port > 0 else {
            throw NegotiationError(
                .unusableAddress,
                "The peer's address \"\(connection.address.prefix(64))\" is not an IPv4 or IPv6 address.")
        }
        guard !literal.isMulticast else {
            throw NegotiationError(.unusableAddress, "The peer's address is one of multicast; calls are between two.")
        }
        return MediaEndpoint(address: connection.address, port: port)
    }

    /// RTCP goes with RTP if both multiplex, else where `rtcp` says, else to the next port (RFC 3605 §2.1).
    private static func control(
        _ section: MediaSection, _ connection: ConnectionAddress
    ) throws(NegotiationError) -> ControlRoute {
        guard !section.offersRTCPMux else { return .muxed }
        if let said = section.rtcpEndpoint {
            return .separate(try endpoint(said.address ?? connection, said.port))
        }
        return .separate(try endpoint(connection, min(section.port + 1, 65_535)))
    }

    /// The longest of our packets that is not longer than the peer wishes and not shorter than it takes.
    private static func packetTime(_ section: MediaSection, _ opus: OpusParameters, _ local: LocalMedia) -> Int {
        let limit = section.maximumPacketTimeMilliseconds ?? 120
        let wish = min(section.packetTimeMilliseconds ?? local.packetTimeMilliseconds, limit)
        let floor = min(opus.minimumPacketTimeMilliseconds, limit)
        let ours = [10, 20, 40, 60]
        let chosen = ours.last { $0 <= wish } ?? 10
        return chosen >= floor ? chosen : ours.first { $0 >= floor } ?? chosen
    }
}
