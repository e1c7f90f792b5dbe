public import Datagrams
internal import NetworkAddress
internal import RTP
internal import SecureTransport
public import Timekeeping

// Datagrams that come in.
extension PeerSession {
    /// Takes one datagram, decrypting it in place. What is refused may be of another call: it is counted only by
    /// ``count(_:)``, and may be half decrypted.
    ///
    /// - Parameters:
    ///   - origin: The way back to where it came from. Only a packet that is taken can move the peer's address.
    ///   - arrival: When the kernel took it in.
    @_noAllocation @_noLocks
    public mutating func receive(
        _ datagram: inout MutableRawSpan, from origin: DatagramPath, at arrival: Instant
    ) -> Received {
        switch classify(datagram) {
        case .rtp: return receiveMedia(&datagram, from: origin, at: arrival)
        case .rtcp: return receiveControl(&datagram, from: origin, at: arrival)
        case .stun, .dtls, .turnChannel, .unknown:
            counters.dropped.malformed += 1
            return .dropped
        }
    }

    /// Counts a datagram that was refused and is dropped.
    @_noAllocation @_noLocks
    public mutating func count(_ refusal: Refusal) {
        switch refusal {
        case .unauthenticated: counters.dropped.unauthenticated += 1
        case .replayed: counters.dropped.replayed += 1
        case .early: counters.dropped.early += 1
        case .malformed: counters.dropped.malformed += 1
        case .unknownSource: counters.dropped.ofUnknownSource += 1
        }
    }

    @_noAllocation @_noLocks
    private mutating func receiveMedia(
        _ datagram: inout MutableRawSpan, from origin: DatagramPath, at arrival: Instant
    ) -> Received {
        do throws(SRTPContext.Failure) {
            guard let length = try protection.unprotect(&datagram, isControl: false, at: arrival) else {
                return .refused(.early)
            }
            datagram = datagram._consumingExtracting(..<length)
        } catch {
            return refuse(error)
        }
        do throws(RTPParseError) {
            let header = try parseHeader(datagram)
            guard isAccepted(header, from: origin.remote, at: arrival) else { return .refused(.unknownSource) }
            guard let (kind, format) = received.find(header.payloadType) else {
                counters.dropped.unknownPayloadType += 1
                return .dropped
            }
            guard follow(header, from: origin, at: arrival) else { return .dropped }
            count(header, kind, clockRate: format.clockRate, at: arrival)
            if let identifier = remoteTransportSequenceIdentifier,
                let number = transportSequenceNumber(datagram, header, identifier)
            {
                arrivals.received(number, at: arrival)
            }
            noteMedia(at: arrival)
            switch kind {
            case .sound: return .media(header)
            case .comfortNoise: return .comfortNoise(header)
            case .redundantSound: return .redundantMedia(header)
            case .telephoneEvent(let clockRate): return .telephoneEvent(header, clockRate: clockRate)
            }
        } catch {
            counters.dropped.malformed += 1
            return .dropped
        }
    }

    /// Whether a packet's address is one that the peer may send from. Protection tells that by itself.
    @_noAllocation @_noLocks
    private mutating func isAccepted(_ header: RTPHeader, from source: SocketAddress, at arrival: Instant) -> Bool {
        guard !protection.isRequired else { return true }
        return route.acceptsMedia(from: source, isOfStream: remoteSSRC == header.ssrc, at: arrival)
    }

    /// Lets address and SSRC follow a packet that was accepted.
    ///
    /// - Returns: Whether the packet counts: it is of the stream that the peer is heard by, and not of ours.
    @_noAllocation @_noLocks
    private mutating func follow(_ header: RTPHeader, from origin: DatagramPath, at arrival: Instant) -> Bool {
        guard header.ssrc != plan.localSSRC else {
            counters.dropped.looped += 1
            return false
        }
        var isNewest = true
        switch streams.receive(ssrc: header.ssrc, sequenceNumber: header.sequenceNumber, at: arrival) {
        case .current(let isAhead): isNewest = isAhead
        case .takesOver:
            remoteSSRC = header.ssrc
            noteRoute()
        case .ignored:
            counters.dropped.ofOtherStream += 1
            return false
        }
        if isNewest, route.follow(origin, at: arrival) { noteRoute() }
        return true
    }

    /// Counts a packet of the peer's stream.
    @_noAllocation @_noLocks
    private mutating func count(_ header: RTPHeader, _ kind: PayloadKinds.Kind, clockRate: Int, at arrival: Instant) {
        var isEvent = false
        if case .telephoneEvent = kind { isEvent = true }
        let roundTrip = roundTripNanoseconds
        let isRepair = requests.received(header.sequenceNumber, roundTrip: roundTrip, at: arrival)
        if isRepair { counters.feedback.packetsRepaired += 1 }
        reporter.receivedMedia(header, measuresJitter: !isEvent && !isRepair, clockRate: clockRate, at: arrival)
        counters.packetsReceived += 1
        counters.payloadBytesReceived += header.payload.count
    }

    @_noAllocation @_noLocks
    mutating func refuse(_ failure: SRTPContext.Failure) -> Received {
        switch failure {
        case .authentication: return .refused(.unauthenticated)
        case .replay: return .refused(.replayed)
        case .malformed: return .refused(.malformed)
        }
    }
}

// What follows looks at a datagram without changing it. Unoptimised code counts the end of such a view as a
// deallocation, though there is nothing to free, so it is not analysed; what it calls is.

@_semantics("no_performance_analysis") @inline(__always)
private func classify(_ datagram: borrowing MutableRawSpan) -> DatagramKind { DatagramKind(of: datagram.bytes) }

@_semantics("no_performance_analysis") @inline(__always)
private func parseHeader(_ datagram: borrowing MutableRawSpan) throws(RTPParseError) -> RTPHeader {
    try RTPHeader(parsing: datagram.bytes)
}

@_semantics("no_performance_analysis") @inline(__always)
private func transportSequenceNumber(
    _ datagram: borrowing MutableRawSpan, _ header: RTPHeader, _ identifier: UInt8
) -> UInt16? {
    header.transportSequenceNumber(identifier, in: datagram.bytes)
}
