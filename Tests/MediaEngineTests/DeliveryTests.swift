import AudioKit
import Realtime
import Foundation
import Playout
import SecureTransport
import TestSupport
import Testing
import Core

@testable import CallMedia
@testable import MediaEngine

@Suite("Which call a datagram goes to")
struct DeliveryTests {
    /// Calls of one worker, and the peers of each.
    private struct Bench: ~Copyable {
        var calls = RouteTable(capacity: 16)
        private var keys: [(there: SRTPKey, back: SRTPKey)] = []
        private var peers: [UnsafeMutablePointer<PeerSession>] = []
        private var counters = WorkerCounters()
        private var early = EarlyDatagrams()
        /// What may still be tried, as a worker has it in a turn.
        var guesses = 64

        /// Adds a call whose peer says that it is at `port` and sends with `ssrc`.
        ///
        /// - Parameters:
        ///   - slot: Its own socket, if it has one.
        ///   - isHandshaking: Whether the call gets its keys with ``agree(_:at:)``, and the peer has them.
        mutating func add(
            port: UInt16, ssrc: UInt32, isProtected: Bool, tellsSSRC: Bool = false, slot: Int? = nil,
            isHandshaking: Bool = false
        ) throws {
            var generator = SeededGenerator(seed: UInt64(peers.count))
            let (there, back) = (
                SRTPKey.random(.aeadAES128GCM, using: &generator), SRTPKey.random(.aeadAES128GCM, using: &generator)
            )
            let number = UInt64(peers.count + 1)
            let remote = try #require(SocketAddress(host: "192.0.2.1", port: port))
            var plan = MediaCallPlan(
                peer: Self.plan(
                    to: remote, ssrc: 1_000 + UInt32(number), remoteSSRC: tellsSSRC ? ssrc : nil,
                    isHandshaking ? .handshake : isProtected ? .keys(send: back, receive: there) : .plain),
                encoder: EncoderSettings(), playout: PlayoutConfiguration(), audio: AudioBehaviour(source: .silence),
                start: .atOnce)
            plan.peer.sockets = slot.map { CallSockets(ipv4: $0, ipv6: nil) }
            // Packets come a second after the calls have begun.
            let start = Instant(nanoseconds: -1_000_000_000)
            calls.append(
                try MediaCall.make(id: MediaCallID(rawValue: number), plan: plan, rings: CallRings(), at: start))
            let peer = UnsafeMutablePointer<PeerSession>.allocate(capacity: 1)
            peer.initialize(
                to: try PeerSession(
                    Self.plan(
                        to: remote, ssrc: ssrc, remoteSSRC: nil,
                        isProtected ? .keys(send: there, receive: back) : .plain), at: .zero))
            peers.append(peer)
            keys.append((there, back))
        }

        /// The handshake of a call ends here, too.
        mutating func agree(_ call: Int, at now: Instant = .zero) throws {
            var pair = try SRTPPair(send: keys[call].back, receive: keys[call].there)
            calls[call].pointee.install(&pair, at: now)
            early.give(to: call, of: calls, at: now)
            calls.update(call)
        }

        private static func plan(
            to remote: SocketAddress, ssrc: UInt32, remoteSSRC: UInt32?, _ protection: PeerPlan.Protection
        ) -> PeerPlan {
            PeerPlan(
                transport: .direct(to: remote), protection: protection, remoteSSRC: remoteSSRC, localSSRC: ssrc,
                canonicalName: "peer", sendPayloadType: 111, receivePayloadType: 111, randomSeed: UInt64(ssrc))
        }

        /// The peer of a call sends a packet from a port of its host.
        mutating func send(_ peer: Int, from port: UInt16, host: String = "192.0.2.1", to arriving: Int = 0) throws {
            var batch = DatagramBatch()
            var slot = batch.freeSlot()
            let length = peers[peer].pointee.writeMedia(
                payloadBytes: 60, timestamp: 0, marker: false, at: .zero, into: &slot)
            let source = try #require(SocketAddress(host: host, port: port))
            batch.commit(byteCount: length, by: DatagramPath(socket: arriving, local: nil, remote: source))
            let delivery = WorkerLoop.deliver(&batch, 0, to: calls, &early, &guesses, &counters)
            counters.datagramsReceived += 1
            if case .call(let position) = delivery { calls.update(position) }
        }

        /// Packets that each call has taken.
        var taken: [Int] { (0..<calls.count).map { calls[$0].pointee.peer.statistics.packetsReceived } }
        /// Packets that calls have counted as not their peer's.
        var refused: Int { (0..<calls.count).reduce(0) { $0 + calls[$1].pointee.peer.statistics.dropped.total } }
        var unknown: Int { counters.datagramsUnknown }

        deinit {
            for index in 0..<calls.count {
                calls[index].deinitialize(count: 1)
                calls[index].deallocate()
            }
            for peer in peers {
                peer.deinitialize(count: 1)
                peer.deallocate()
            }
        }
    }

    @Test("Two calls whose peers have the same SSRC are distinguished by their addresses", arguments: [true, false])
    func sameSSRC(isProtected: Bool) throws {
        var bench = Bench()
        try bench.add(port: 5_000, ssrc: 7, isProtected: isProtected)
        try bench.add(port: 6_000, ssrc: 7, isProtected: isProtected)
        for _ in 0..<10 {
            try bench.send(0, from: 5_000)
            try bench.send(1, from: 6_000)
        }
        let (taken, refused) = (bench.taken, bench.refused)
        #expect(taken == [10, 10] && refused == 0)
    }

    @Test("Calls with the same SSRC from one address are distinguished by their keys")
    func sameAddress() throws {
        var bench = Bench()
        for _ in 0..<3 { try bench.add(port: 5_000, ssrc: 7, isProtected: true) }
        for _ in 0..<10 {
            for peer in 0..<3 { try bench.send(peer, from: 5_000) }
        }
        let (taken, refused) = (bench.taken, bench.refused)
        #expect(taken == [10, 10, 10] && refused == 0)
    }

    @Test("A protected call is found again when its address changes, though others have its SSRC")
    func rebinding() throws {
        var bench = Bench()
        for port in [UInt16(5_000), 6_000, 7_000] { try bench.add(port: port, ssrc: 7, isProtected: true) }
        for (peer, port) in [(0, UInt16(5_000)), (1, 6_000), (2, 7_000), (2, 40_000), (1, 40_001), (0, 5_000)] {
            try bench.send(peer, from: port)
        }
        let (taken, refused) = (bench.taken, bench.refused)
        let ports = (0..<3).map { bench.calls[$0].pointee.peer.path?.datagrams.remote.port }
        #expect(taken == [2, 2, 2] && refused == 0)
        #expect(ports == [5_000, 40_001, 40_000])
    }

    @Test("Peers behind a translator, of which neither address nor SSRC is known, are all found by their keys")
    func translated() throws {
        var bench = Bench()
        for number in UInt16(0)..<10 {
            try bench.add(port: 5_000 + number, ssrc: 7, isProtected: true)
        }
        // With ten candidates, four of them tried, each is found soon.
        for _ in 0..<20 {
            for peer in 0..<10 { try bench.send(peer, from: 40_000 + UInt16(peer), host: "198.51.100.7") }
            bench.guesses = 64
        }
        let taken = bench.taken
        #expect(taken.allSatisfy { $0 >= 10 }, "\(taken)")
    }

    @Test("A call without protection takes a packet of unknown origin only if no other such call could")
    func unprotected() throws {
        var bench = Bench()
        try bench.add(port: 5_000, ssrc: 7, isProtected: false)
        try bench.add(port: 6_000, ssrc: 8, isProtected: false)
        try bench.send(0, from: 5_500)
        var taken = bench.taken
        #expect(taken == [0, 0], "it could be of either")
        try bench.send(1, from: 6_000)
        try bench.send(0, from: 5_500)
        taken = bench.taken
        #expect(taken == [1, 1])
    }

    @Test(
        "A stranger's packet takes no call from the address that its peer describes, nor from that host",
        arguments: [UInt16(5_000), 5_500])
    func strangerFirst(port: UInt16) throws {
        var bench = Bench()
        try bench.add(port: 5_000, ssrc: 7, isProtected: false)
        try bench.add(port: 9_000, ssrc: 99, isProtected: false)
        bench.calls.remove(at: 1)
        try bench.send(1, from: 40_000, host: "203.0.113.9")
        var taken = bench.taken
        #expect(taken == [1], "a guess while the peer is silent")
        for _ in 0..<3 {
            try bench.send(0, from: port)
            try bench.send(1, from: 40_000, host: "203.0.113.9")
        }
        taken = bench.taken
        #expect(taken == [4])
    }

    @Test("Packets that come before the handshake ends here are taken once it has, and are not counted as dropped")
    func early() throws {
        var bench = Bench()
        try bench.add(port: 5_000, ssrc: 7, isProtected: true, isHandshaking: true)
        try bench.add(port: 5_000, ssrc: 8, isProtected: true, isHandshaking: true)
        for _ in 0..<2 {
            for peer in 0..<2 { try bench.send(peer, from: 5_000) }
        }
        var (taken, refused) = (bench.taken, bench.refused)
        #expect(taken == [0, 0] && refused == 4)
        try bench.agree(0)
        taken = bench.taken
        #expect(taken == [2, 0], "the other call's packets wait for its own keys")
        try bench.agree(1)
        (taken, refused) = (bench.taken, bench.refused)
        #expect(taken == [2, 2] && refused == 0)
        try bench.agree(1)
        taken = bench.taken
        #expect(taken == [2, 2], "each is taken once")
    }

    @Test("Of a flood before the handshake ends 64 packets are kept, and none for longer than 2 s")
    func earlyFlood() throws {
        var bench = Bench()
        try bench.add(port: 5_000, ssrc: 7, isProtected: true, isHandshaking: true)
        for _ in 0..<100 { try bench.send(0, from: 5_000) }
        try bench.agree(0)
        let (taken, refused) = (bench.taken, bench.refused)
        #expect(taken == [64] && refused == 36)

        var late = Bench()
        try late.add(port: 5_000, ssrc: 7, isProtected: true, isHandshaking: true)
        try late.send(0, from: 5_000)
        try late.agree(0, at: Instant(nanoseconds: 2_000_000_001))
        let missed = late.taken
        #expect(missed == [0])
    }

    @Test("What arrives at a call's own port is offered to no other call, and a call with one gets nothing else")
    func ownPort() throws {
        var bench = Bench()
        try bench.add(port: 5_000, ssrc: 7, isProtected: false, slot: 2)
        try bench.add(port: 5_000, ssrc: 7, isProtected: false, slot: 3)
        try bench.add(port: 6_000, ssrc: 8, isProtected: false)
        // One peer with one socket and one SSRC in two calls; only the port that it writes to tells which.
        for _ in 0..<3 { try bench.send(0, from: 5_000, to: 2) }
        for _ in 0..<2 { try bench.send(0, from: 5_000, to: 3) }
        try bench.send(2, from: 6_000, to: 0)
        try bench.send(0, from: 5_000, to: 0)
        try bench.send(2, from: 6_000, to: 2)
        let (taken, refused, unknown) = (bench.taken, bench.refused, bench.unknown)
        #expect(taken == [3, 2, 1] && refused == 1 && unknown == 1)
    }

    @Test("A flood of packets of no call is tried a bounded number of times in each turn")
    func flood() throws {
        var bench = Bench()
        for number in UInt16(0)..<8 { try bench.add(port: 5_000 + number, ssrc: UInt32(number), isProtected: true) }
        try bench.add(port: 9_000, ssrc: 99, isProtected: true, tellsSSRC: true)
        bench.calls.remove(at: 8)
        for number in 0..<200 { try bench.send(8, from: 40_000 + UInt16(number)) }
        let (guesses, refused, unknown) = (bench.guesses, bench.refused, bench.unknown)
        #expect(guesses == 0)
        #expect(refused + unknown == 200 && refused <= 64 / 4)
    }
}

@Suite("Callers with the same SSRC on real sockets", .timeLimit(.minutes(2)))
struct SameSourceTests {
    /// How the calls are protected.
    enum Protection: CaseIterable { case plain, sdes }

    /// The share of a recording's sound that is of a tone rather than of another, told by the zero crossings in each 20 ms:
    /// what a busy machine makes of a call does not matter.
    private static func share(of samples: [Int16], at frequency: Int, ratherThan other: Int) -> Double {
        var (own, all) = (0, 0)
        for start in stride(from: 0, to: samples.count - 960, by: 960) {
            let part = samples[start..<start + 960]
            guard part.contains(where: { abs(Int($0)) > 2_000 }) else { continue }
            let crossings = zip(part, part.dropFirst()).filter { ($0 < 0) != ($1 < 0) }.count
            all += 1
            if abs(crossings - frequency / 25) < abs(crossings - other / 25) { own += 1 }
        }
        return all >= 25 ? Double(own) / Double(all) : 0
    }

    @Test(
        "Two callers of one device that have the same SSRC are each heard in their own call",
        arguments: Protection.allCases)
    func twoCallers(protection: Protection) async throws {
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let configuration = MediaEngineConfiguration(bindAddress: loopback, realtimePriority: nil)
        let log = EventLog()
        let device = try MediaEngine(configuration, files: AudioFileThreads(.patient)) { log.note($0) }
        let callers = [try MediaEngine(configuration) { _ in }, try MediaEngine(configuration) { _ in }]
        let folder = FileManager.default.temporaryDirectory
        let paths = (0..<2).map { folder.appending(path: "handset-\(UUID().uuidString)-\($0).wav").path() }
        defer { paths.forEach { try? FileManager.default.removeItem(atPath: $0) } }
        var ids: [MediaCallID] = []
        for (number, caller) in callers.enumerated() {
            var generator = SeededGenerator(seed: UInt64(number))
            let (there, back) = (
                SRTPKey.random(.aesCM128HMACSHA1, using: &generator),
                SRTPKey.random(.aesCM128HMACSHA1, using: &generator)
            )
            let isPlain = protection == .plain
            let (atCaller, atDevice) = (caller.place(), device.place())
            ids.append(
                try device.start(
                    Self.plan(
                        to: atCaller.localAddress, ssrc: 100 + UInt32(number),
                        isPlain ? .plain : .keys(send: back, receive: there),
                        AudioBehaviour(source: .silence, recording: paths[number]),
                        .withFirstPacket(noLaterThan: .milliseconds(200))), at: atDevice))
            _ = try caller.start(
                Self.plan(
                    to: atDevice.localAddress, ssrc: 7, isPlain ? .plain : .keys(send: there, receive: back),
                    AudioBehaviour(source: .tone(frequencyHz: number == 0 ? 500 : 1_500, levelDBFS: -12)), .atOnce),
                at: atCaller)
        }
        for id in ids {
            try await until { try #require(await device.report(on: id)).peer.packetsReceived >= 50 }
        }
        for id in ids { device.stop(id) }
        for id in ids { _ = try await log.ended(id) }
        for engine in callers + [device] { engine.shutdown() }
        for (number, path) in paths.enumerated() {
            let samples = try AudioFileReader.samples(ofFile: path)
            let share = Self.share(
                of: samples, at: number == 0 ? 500 : 1_500, ratherThan: number == 0 ? 1_500 : 500)
            #expect(share > 0.9, "call \(number) hears its own caller's tone")
        }
    }

    private static func plan(
        to remote: SocketAddress, ssrc: UInt32, _ protection: PeerPlan.Protection, _ audio: AudioBehaviour,
        _ start: MediaCallPlan.Start
    ) -> MediaCallPlan {
        MediaCallPlan(
            peer: PeerPlan(
                transport: .direct(to: remote), protection: protection, remoteSSRC: nil, localSSRC: ssrc,
                canonicalName: "test@handset", sendPayloadType: 111, receivePayloadType: 111,
                randomSeed: UInt64(ssrc)),
            encoder: EncoderSettings(), playout: PlayoutConfiguration(), audio: audio, start: start)
    }
}
