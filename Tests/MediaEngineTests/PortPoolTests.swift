import CallMedia
import Realtime
import Core
import AudioKit
import Playout
import TestSupport
import Testing

@testable import MediaEngine

@Suite("Ports of calls without ICE, in virtual time")
struct PortPoolTests {
    private static func at(_ seconds: Double) -> Instant { Instant(nanoseconds: Int64(seconds * 1_000_000_000)) }

    @Test("A port rests for a minute after its call, while there are others")
    func rest() throws {
        var generator = SeededGenerator(seed: 1)
        var pool = PortPool(16_384...16_483)
        let used = try #require(pool.take(at: .zero, using: &generator))
        pool.giveBack(used, at: Self.at(10))
        for second in 10..<70 {
            let port = try #require(pool.take(at: Self.at(Double(second) + 0.9), using: &generator))
            #expect(port != used)
        }
        // 39 are left that no call has.
        var others: Set<UInt16> = []
        for _ in 0..<40 { others.insert(try #require(pool.take(at: Self.at(70), using: &generator))) }
        #expect(others.contains(used) && others.count == 40)
        let none = pool.take(at: Self.at(70), using: &generator)
        #expect(none == nil)
    }

    @Test("Each call has another port, and none is left once calls have all of them")
    func all() {
        var generator = SeededGenerator(seed: 2)
        var pool = PortPool(20_000...20_009)
        let taken = (0..<10).compactMap { _ in pool.take(at: .zero, using: &generator) }
        #expect(Set(taken) == Set(20_000...20_009))
        let none = pool.take(at: .zero, using: &generator)
        #expect(none == nil)
    }

    @Test("If all others are in use or rest, the port that has rested longest is taken: short calls lock out no other")
    func shortCalls() throws {
        var generator = SeededGenerator(seed: 3)
        var pool = PortPool(20_000...20_003)
        var last: [UInt16] = []
        for call in 0..<1_000 {
            let now = Self.at(Double(call) / 10)
            let port = try #require(pool.take(at: now, using: &generator))
            #expect(!last.suffix(3).contains(port))
            pool.giveBack(port, at: now)
            last.append(port)
        }
    }

    @Test("A port that the system has chosen rests, too")
    func systemsChoice() {
        var pool = PortPool(nil)
        pool.giveBack(40_000, at: .zero)
        var isResting = pool.isResting(40_000, at: Self.at(59.9))
        #expect(isResting)
        isResting = pool.isResting(40_001, at: Self.at(59.9))
        #expect(!isResting)
        isResting = pool.isResting(40_000, at: Self.at(60))
        #expect(!isResting)
    }
}

@Suite("Calls without ICE and without protection, on real sockets", .timeLimit(.minutes(2)))
struct OwnPortTests {
    /// A telephone, or a stranger: a socket that sends and counts.
    private struct Telephone: ~Copyable {
        let socket: UDPSocket
        private let ssrc: UInt32
        private var sequence: UInt16 = 0
        private(set) var received = 0

        init(host: String, ssrc: UInt32) throws {
            socket = try UDPSocket(boundTo: try #require(SocketAddress(host: host, port: 0)))
            self.ssrc = ssrc
        }

        mutating func send(to address: SocketAddress) {
            sequence &+= 1
            var packet: [UInt8] = [0x80, 111, UInt8(sequence >> 8), UInt8(sequence & 255), 0, 0, 0, 0]
            packet += (0..<4).map { UInt8(truncatingIfNeeded: ssrc >> UInt32(24 - 8 * $0)) }
            socket.send(packet + Array(repeating: 0, count: 40), to: address)
        }

        /// Counts media that has come, without reports.
        mutating func count() {
            var batch = DatagramBatch()
            while socket.receive(into: &batch) == 0, batch.count > 0 {
                for index in 0..<batch.count {
                    let datagram = batch.bytes(index)
                    let type =
                        datagram.byteCount > 12 ? datagram.bytes.unsafeLoad(fromByteOffset: 1, as: UInt8.self) : 0
                    if type & 0x7f == 111 { received += 1 }
                }
            }
        }
    }

    private static func plan(to remote: SocketAddress) -> MediaCallPlan {
        MediaCallPlan(
            peer: PeerPlan(
                transport: .direct(to: remote), protection: .plain, remoteSSRC: nil, localSSRC: 1,
                canonicalName: "test@handset", sendPayloadType: 111, receivePayloadType: 111, randomSeed: 1),
            encoder: EncoderSettings(), playout: PlayoutConfiguration(),
            audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)), start: .atOnce)
    }

    private static func engine(_ log: EventLog, ports: ClosedRange<UInt16>? = nil) throws -> MediaEngine {
        try MediaEngine(
            MediaEngineConfiguration(
                bindAddress: try #require(SocketAddress(host: "127.0.0.1", port: 0)), callPorts: ports,
                realtimePriority: nil)
        ) { log.note($0) }
    }

    @Test("A stranger who sends before the caller hears the call only until the caller's first packet")
    func strangerFirst() async throws {
        let log = EventLog()
        let engine = try Self.engine(log)
        defer { engine.shutdown() }
        var caller = try Telephone(host: "127.0.0.1", ssrc: 7)
        var stranger = try Telephone(host: "127.0.0.2", ssrc: 9)
        let placement = engine.place()
        let port = try engine.openPort(at: placement)
        let address = try #require(port.addresses.first)
        let id = try engine.start(Self.plan(to: caller.socket.localAddress), at: placement, port: port)
        while stranger.received == 0 {
            stranger.send(to: address)
            try await Task.sleep(for: .milliseconds(20))
            stranger.count()
        }
        caller.count()
        let before = caller.received
        var atFirst = 0
        for number in 0..<100 {
            caller.send(to: address)
            stranger.send(to: address)
            try await Task.sleep(for: .milliseconds(20))
            stranger.count()
            // A packet or two may have been under way.
            if number == 5 { atFirst = stranger.received }
        }
        caller.count()
        #expect(caller.received - before >= 60, "\(caller.received - before) of 100")
        #expect(stranger.received == atFirst)
        let report = try #require(await engine.report(on: id))
        #expect(report.peer.packetsReceived >= 95 && report.peer.dropped.ofUnknownSource >= 95)
    }

    @Test("The peer of a call that has ended and sends on is not heard in the next call")
    func formerPeer() async throws {
        let log = EventLog()
        let engine = try Self.engine(log)
        defer { engine.shutdown() }
        var former = try Telephone(host: "127.0.0.2", ssrc: 7)
        let next = try Telephone(host: "127.0.0.1", ssrc: 9)
        let placement = engine.place()
        let first = try engine.openPort(at: placement)
        let address = try #require(first.addresses.first)
        let id = try engine.start(Self.plan(to: former.socket.localAddress), at: placement, port: first)
        while try #require(await engine.report(on: id)).peer.packetsReceived == 0 { former.send(to: address) }
        engine.stop(id)
        _ = try await log.ended(id)
        let second = try engine.openPort(at: placement)
        #expect(second.addresses.first != address)
        let other = try engine.start(Self.plan(to: next.socket.localAddress), at: placement, port: second)
        for _ in 0..<50 {
            former.send(to: address)
            try await Task.sleep(for: .milliseconds(10))
        }
        let report = try #require(await engine.report(on: other))
        #expect(report.peer.packetsReceived == 0 && report.peer.packetsSent > 0)
    }

    @Test("Calls get the ports of the range, and an error that helps once they have all of them")
    func usedUp() async throws {
        let log = EventLog()
        let somewhere = try UDPSocket(boundTo: try #require(SocketAddress(host: "127.0.0.1", port: 0)))
        let first = min(somewhere.localAddress.port, 65_520)
        let engine = try Self.engine(log, ports: first...first + 9)
        defer { engine.shutdown() }
        let placement = engine.place()
        var open: [MediaPort] = []
        // The first port, and perhaps others, belong to somebody else.
        let error = try #require(
            throws: MediaStartError.self,
            performing: { for _ in 0..<10 { open.append(try engine.openPort(at: placement)) } })
        let ports = open.compactMap { $0.addresses.first?.port }
        #expect(
            !ports.isEmpty && Set(ports).count == ports.count && ports.allSatisfy { (first...first + 9).contains($0) })
        #expect(error.isFull)
        #expect(
            error.description
                == "no UDP port is free for the call: calls and other processes have all 10 of media.ports "
                + "(\(first)-\(first + 9)). Give it more ports, or lower answer.max_calls.")
        let id = try engine.start(Self.plan(to: somewhere.localAddress), at: placement, port: open.removeFirst())
        engine.stop(id)
        _ = try await log.ended(id)
        // Its port is free as soon as the worker has closed the socket.
        try await until { (try? engine.openPort(at: placement)) != nil }
    }
}
