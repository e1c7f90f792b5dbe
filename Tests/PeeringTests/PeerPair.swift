import Realtime
import Core
import CallMedia
import RTP
import SecureTransport
import TestSupport
import Testing

/// Two sessions on a wire that only the test touches, in virtual time.
struct PeerPair: ~Copyable {
    static let leftAddress = SocketAddress(host: "192.0.2.1", port: 5_000)
    static let rightAddress = SocketAddress(host: "192.0.2.2", port: 6_000)

    var left: PeerSession
    var right: PeerSession
    var now = Instant.zero
    private var timestamp: UInt32 = 0

    init(
        suite: SRTPSuite = .aeadAES128GCM, rightReceivesUnder seed: UInt64 = 1,
        _ change: (inout PeerPlan) -> Void = { _ in }
    ) throws {
        var generator = SeededGenerator(seed: 1)
        let toRight = SRTPKey.random(suite, using: &generator)
        let toLeft = SRTPKey.random(suite, using: &generator)
        var other = SeededGenerator(seed: seed)
        let heard = SRTPKey.random(suite, using: &other)
        var leftPlan = try Self.plan(to: Self.rightAddress, ssrc: 1, send: toRight, receive: toLeft)
        var rightPlan = try Self.plan(to: Self.leftAddress, ssrc: 2, send: toLeft, receive: heard)
        change(&leftPlan)
        change(&rightPlan)
        let left = try PeerSession(leftPlan, at: .zero)
        let right = try PeerSession(rightPlan, at: .zero)
        self.left = left
        self.right = right
    }

    static func plan(
        to remote: SocketAddress?, ssrc: UInt32, send: SRTPKey?, receive: SRTPKey?
    ) throws -> PeerPlan {
        let protection: PeerPlan.Protection
        if let send, let receive {
            protection = .keys(send: send, receive: receive)
        } else {
            protection = .plain
        }
        return PeerPlan(
            transport: .direct(to: try #require(remote)), protection: protection, remoteSSRC: nil, localSSRC: ssrc,
            canonicalName: "peer\(ssrc)", sendPayloadType: 111, receivePayloadType: 111, randomSeed: UInt64(ssrc))
    }

    /// A media packet of the left session, as it goes on the wire.
    mutating func leftMedia(payload: [UInt8] = Array(repeating: 7, count: 60)) -> [UInt8] {
        timestamp &+= 960
        return PeerPair.media(of: &left, payload, timestamp, now)
    }

    mutating func rightMedia(payload: [UInt8] = Array(repeating: 9, count: 60)) -> [UInt8] {
        timestamp &+= 960
        return PeerPair.media(of: &right, payload, timestamp, now)
    }

    static func media(of session: inout PeerSession, _ payload: [UInt8], _ timestamp: UInt32, _ now: Instant) -> [UInt8]
    {
        var packet =
            Array(repeating: UInt8(0), count: session.mediaHeaderBytes) + payload + Array(repeating: 0, count: 40)
        var elements = packet.mutableSpan
        var span = elements.mutableBytes
        let length = session.writeMedia(
            payloadBytes: payload.count, timestamp: timestamp, marker: false, at: now, into: &span)
        return Array(packet[..<length])
    }

    /// The session's report, if one is due.
    static func control(of session: inout PeerSession, _ now: Instant) -> [UInt8]? {
        guard session.isControlDue(at: now) else { return nil }
        var packet = [UInt8](repeating: 0, count: 1_500)
        var elements = packet.mutableSpan
        var span = elements.mutableBytes
        let length = session.writeControl(
            at: now, wallNanoseconds: 1_700_000_000_000_000_000 + now.nanoseconds, into: &span)
        return length > 0 ? Array(packet[..<length]) : nil
    }

    static func goodbye(of session: inout PeerSession, _ now: Instant) -> [UInt8] {
        var packet = [UInt8](repeating: 0, count: 1_500)
        var elements = packet.mutableSpan
        var span = elements.mutableBytes
        let length = session.writeGoodbye(at: now, wallNanoseconds: 1_700_000_000_000_000_000, into: &span)
        return Array(packet[..<length])
    }

    @discardableResult
    static func deliver(
        _ packet: [UInt8], to session: inout PeerSession, from source: SocketAddress?, at now: Instant
    ) throws -> (PeerSession.Received, plain: [UInt8]) {
        var bytes = packet
        let address = try #require(source)
        var elements = bytes.mutableSpan
        var span = elements.mutableBytes
        let isControl = DatagramKind(of: packet.span.bytes) == .rtcp
        let received = session.receive(&span, isControl: isControl, from: DatagramPath(to: address), at: now)
        guard case .refused(let refusal) = received else { return (received, bytes) }
        session.count(refusal)
        return (.dropped, bytes)
    }
}
