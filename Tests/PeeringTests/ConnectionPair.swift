import DTLSSupport
import Realtime
import ICE
import Core
import CallMedia
import SecureTransport
import TestSupport
import Testing

/// Two connections and a network between them, on virtual time.
struct ConnectionPair: ~Copyable {
    /// The sides, by number: 0 controls and waits for the handshake, 1 begins it.
    struct Side: ~Copyable {
        var connection: Connection<ScriptedDTLS>
        let address: SocketAddress
        var said: [Said] = []
    }

    /// What a side has said that is not a datagram.
    enum Said: Equatable {
        case path(Bool)
        case direct(SocketAddress)
        case keys(send: SRTPKey, receive: SRTPKey)
        case failed(ConnectionFailure)
        case closed
    }

    private struct Packet {
        let to: Int
        let at: Instant
        let bytes: [UInt8]
        let source: SocketAddress
    }

    var left: Side
    var right: Side
    private(set) var now = Instant.zero
    /// Whether a datagram arrives; asked for each.
    var arrives: (_ bytes: [UInt8], _ to: Int) -> Bool = { _, _ in true }
    /// The address that the right side has outside of its network; only there it is reached.
    var translated: SocketAddress?
    private var packets: [Packet] = []

    init(seed: UInt64 = 1) throws {
        let first = try Self.side(0, seed)
        let second = try Self.side(1, seed)
        left = first
        right = second
    }

    private static func side(_ number: Int, _ seed: UInt64) throws -> Side {
        var generator = SeededGenerator(seed: seed &* 2 &+ UInt64(number))
        let credentials = ICECredentials(using: &generator)
        let agent = ICEAgent(
            ICEConfiguration(isControlling: number == 0), credentials: credentials, generator: generator)
        let address = try #require(SocketAddress(host: "192.0.2.\(number + 1)", port: 4_000))
        return Side(connection: Connection(agent), address: address)
    }

    /// Gathers on both sides, and tells each of the other.
    mutating func introduce() {
        feed(0, .ice(.start(localAddresses: [left.address])))
        feed(1, .ice(.start(localAddresses: [right.address])))
        let (ofLeft, ofRight) = (left.connection.ice, right.connection.ice)
        feed(0, .ice(.remoteCredentials(ofRight.credentials, isLite: false)))
        feed(1, .ice(.remoteCredentials(ofLeft.credentials, isLite: false)))
        for candidate in ofRight.localCandidates { feed(0, .ice(.remoteCandidate(candidate))) }
        for candidate in ofLeft.localCandidates { feed(1, .ice(.remoteCandidate(candidate))) }
    }

    /// Tells each side the other's address, as a description without ICE does.
    mutating func introduceDirectly() {
        feed(0, .direct(DatagramPath(to: right.address)))
        feed(1, .direct(DatagramPath(to: left.address)))
    }

    /// Gives a side its part of the handshake, with the fingerprint that it has been promised.
    ///
    /// - Parameter round: Associations that the call has had before.
    mutating func begin(_ number: Int, promised: DTLSFingerprint? = nil, round: UInt64 = 0) {
        let own = ScriptedDTLS(number == 0 ? .passive : .active, seed: UInt64(number) + 1 + 10 * round)
        let other = ScriptedDTLS(.active, seed: UInt64(1 - number) + 1 + 10 * round).fingerprint
        var outputs: [Connection<ScriptedDTLS>.Output] = []
        if number == 0 {
            left.connection.begin(own, at: now, into: &outputs)
        } else {
            right.connection.begin(own, at: now, into: &outputs)
        }
        take(outputs, from: number)
        feed(number, .expect([promised ?? other]))
    }

    mutating func feed(_ number: Int, _ input: Connection<ScriptedDTLS>.Input) {
        var outputs: [Connection<ScriptedDTLS>.Output] = []
        if number == 0 {
            left.connection.handle(input, at: now, into: &outputs)
        } else {
            right.connection.handle(input, at: now, into: &outputs)
        }
        take(outputs, from: number)
    }

    private mutating func take(_ outputs: [Connection<ScriptedDTLS>.Output], from number: Int) {
        for output in outputs {
            switch output {
            case .ice(.transmit(let bytes, _, _)): send(bytes, from: number)
            case .transmit(let bytes, let path):
                let reached = number == 0 ? translated ?? right.address : left.address
                if path.remote == reached { send(bytes, from: number) }
            case .ice: break
            case .direct(let path): say(.direct(path.remote), number)
            case .path(let path): say(.path(path != nil), number)
            case .keys(let send, let receive): say(.keys(send: send, receive: receive), number)
            case .failed(let reason): say(.failed(reason), number)
            case .closed: say(.closed, number)
            }
        }
    }

    private mutating func send(_ bytes: [UInt8], from number: Int) {
        guard arrives(bytes, 1 - number) else { return }
        let source = number == 0 ? left.address : translated ?? right.address
        packets.append(
            Packet(to: 1 - number, at: now.advanced(by: .milliseconds(20)), bytes: bytes, source: source))
    }

    private mutating func say(_ words: Said, _ number: Int) {
        if number == 0 { left.said.append(words) } else { right.said.append(words) }
    }

    /// Delivers datagrams and fires timers for that long.
    mutating func run(_ duration: Duration) {
        let end = now.advanced(by: duration)
        while let next = nextMoment, next <= end {
            now = max(now, next)
            if let index = packets.firstIndex(where: { $0.at <= now }) {
                let packet = packets.remove(at: index)
                deliver(packet)
            } else {
                feed(0, .timerFired)
                feed(1, .timerFired)
            }
        }
        now = end
    }

    private var nextMoment: Instant? {
        [packets.map(\.at).min(), left.connection.nextDeadline, right.connection.nextDeadline].compactMap(\.self).min()
    }

    private mutating func deliver(_ packet: Packet) {
        let local = packet.to == 0 ? left.address : right.address
        if let first = packet.bytes.first, first <= 3 {
            feed(packet.to, .ice(.datagram(packet.bytes, local: local, source: packet.source)))
        } else {
            feed(packet.to, .handshake(packet.bytes, from: DatagramPath(to: packet.source)))
        }
    }
}
