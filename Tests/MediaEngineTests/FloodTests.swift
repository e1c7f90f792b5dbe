import Realtime
import ICE
import CallMedia
import MediaEngine
import Core
import Playout
import TestSupport
import Testing

/// Calls whose ports are showered with what nobody asked for, on real sockets.
@Suite("A flood on the ports of a running call", .witnessed, .timeLimit(.minutes(5)))
struct FloodTests {
    @Test("Bad STUN, bad media, bad handshakes and random bytes at ten times the call's rate leave its sound unharmed")
    func flood() async throws {
        let pair = try EnginePair()
        let call = try ConnectedCall(pair, number: 1)
        try await pair.callerEvents.flowing(call.caller)
        try await pair.deviceEvents.flowing(call.device)
        let targets = [
            try await Self.remote(of: call.caller, pair.callerEvents),
            try await Self.remote(of: call.device, pair.deviceEvents),
        ]
        // Two seconds in, the jitter buffers have found their delays.
        try await pair.device.receives(100, on: call.device)
        let quiet = try await Self.spell(of: call, pair) { _ in }

        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let stranger = try UDPSocket(boundTo: loopback)
        var shower = Shower(fragment: call.deviceFragment)
        // To the device's shared port, and to the caller's own, where any handshake reaches the connection thread.
        var sent = 0
        let flooded = try await Self.spell(of: call, pair) { packets in
            while sent < packets * 10 {
                for target in targets { _ = stranger.send(shower.next(), to: target) }
                sent += 1
            }
        }
        let reports = [
            try #require(await pair.device.report(on: call.device)),
            try #require(await pair.caller.report(on: call.caller)),
        ]
        // A machine that stalls takes the call's last packets in at once.
        #expect(sent >= 5 * 100)
        // What a busy machine does to a call it does with and without a flood.
        #expect(flooded.concealed <= quiet.concealed + 0.02, "of all sound; \(quiet.concealed) without the flood")
        #expect(flooded.lost <= quiet.lost + 3)
        for report in reports {
            let unauthenticated = report.peer.dropped.unauthenticated
            #expect(unauthenticated * 10 >= sent, "the media with the call's own SSRC: \(unauthenticated) of \(sent)")
        }
        let ends = [pair.callerEvents, pair.deviceEvents].flatMap(\.all).filter {
            switch $0 {
            case .connectionFailed, .pathLost, .goodbyeReceived, .connectionQuiet, .sendingStopped: true
            default: false
            }
        }
        let counters = pair.device.shutdown() + pair.caller.shutdown()
        #expect(ends.isEmpty, "the call goes on")
        #expect(counters.reduce(0) { $0 + $1.datagramsNotMedia } * 4 >= sent, "the random bytes")
    }

    /// Where a side sends to: its peer's port.
    private static func remote(of id: MediaCallID, _ events: EventLog) async throws -> SocketAddress {
        let event = try await events.first { if case .connected(id, _) = $0 { true } else { false } }
        guard case .connected(_, let way) = event else { throw EventMismatch() }
        return way.remote
    }

    /// What the device's playout made of three seconds of a call.
    private static func spell(
        of call: ConnectedCall, _ pair: EnginePair, _ each: (_ packets: Int) throws -> Void
    ) async throws -> (concealed: Double, lost: Int) {
        let before = try #require(await pair.device.report(on: call.device))
        var after = before
        while after.peer.packetsReceived < before.peer.packetsReceived + 150 {
            try each(after.peer.packetsReceived - before.peer.packetsReceived + 1)
            try await Task.sleep(for: .milliseconds(5))
            after = try #require(await pair.device.report(on: call.device))
        }
        let played = after.playout.samplesPlayed - before.playout.samplesPlayed
        let concealed = after.playout.samplesConcealed - before.playout.samplesConcealed
        return (Double(concealed) / Double(max(1, played)), after.playout.packetsLost - before.playout.packetsLost)
    }
}

/// Datagrams that look like a call's, and are not.
private struct Shower {
    let fragment: String
    private var generator = SeededGenerator(seed: 3)
    private var count = 0

    init(fragment: String) { self.fragment = fragment }

    mutating func next() -> [UInt8] {
        defer { count += 1 }
        let rest = random(Int.random(in: 20...1_200, using: &generator))
        switch count % 6 {
        case 0: return [0xFF] + rest  // Nothing that RFC 7983 knows.
        case 1: return check(tag: random(20))
        case 2: return Array(check(tag: random(20)).prefix(Int.random(in: 1...60, using: &generator)))
        // Media and reports that bear the call's own SSRCs: the caller's is 2, the device's 3.
        case 3: return [0x80, 111] + random(6) + [0, 0, 0, UInt8(2 + count / 6 % 2)] + rest
        case 4: return [0x80, 200] + [0, 6, 0, 0, 0, UInt8(2 + count / 6 % 2)] + rest
        default: return [22, 0xFE, 0xFD, 0, 0] + random(6) + [0, 100] + random(100)
        }
    }

    /// A check for the device whose integrity is made up.
    private mutating func check(tag: [UInt8]) -> [UInt8] {
        let name = Array("\(fragment):abcd".utf8)
        var attributes: [UInt8] = [0, 6, 0, UInt8(name.count)] + name
        attributes += Array(repeating: 0, count: (4 - name.count % 4) % 4)
        attributes += [0, 8, 0, 20] + tag
        attributes += [0x80, 0x28, 0, 4] + random(4)
        return [0, 1, 0, UInt8(attributes.count), 0x21, 0x12, 0xA4, 0x42] + random(12) + attributes
    }

    private mutating func random(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }
}
