import AudioKit
import Core
import Realtime
import SecureTransport
import TestSupport
import Testing

@testable import CallMedia
@testable import MediaEngine

@Suite("Sound does not wait for media to be known to flow both ways")
struct SoundAtOnceTests {
    /// How a call without ICE is protected.
    enum Protection: CaseIterable { case plain, sdes }

    private static let behaviour = AudioBehaviour(source: .file(path: "", loops: false), recording: "")

    /// The rings of a call that plays a file and records.
    private struct Files: ~Copyable {
        var forCall = CallRings()
        var recording: AudioRing.Consumer

        /// A file of 40 ms of tone and then silence.
        init() {
            let played = AudioRing(capacity: 65_536)
            let kept = AudioRing(capacity: 262_144)
            var samples = [Int16](repeating: 0, count: 48_000)
            var tone = ToneGenerator(frequencyHz: 1_000, levelDBFS: -6)
            var room = samples.mutableSpan
            var start = room._mutatingExtracting(0..<1_920)
            tone.fill(&start)
            var producer = played.producer
            _ = producer.write(samples.span)
            forCall.player = .some(played.consumer)
            forCall.recorder = .some(kept.producer)
            recording = kept.consumer
        }

        /// All that was recorded so far.
        static func samples(_ ring: inout AudioRing.Consumer) -> [Int16] {
            var samples = [Int16](repeating: 0, count: 262_144)
            var room = samples.mutableSpan
            let count = ring.read(into: &room)
            return Array(samples[..<count])
        }
    }

    /// The share of the burst's energy that lies within a range of milliseconds of a recording.
    private static func shareOfBurst(in recording: [Int16], _ range: Range<Int>) -> Double {
        let peak = 32_767 * 0.501
        let samples = recording.prefix(range.upperBound * 48).dropFirst(range.lowerBound * 48)
        return samples.reduce(0) { $0 + Double($1) * Double($1) } / (1_920 * peak * peak / 2)
    }

    private static func protect(_ plan: inout MediaCallPlan, _ protection: Protection) {
        guard protection == .sdes else { return }
        var generator = SeededGenerator(seed: 1)
        let (one, other) = (
            SRTPKey.random(.aesCM128HMACSHA1, using: &generator),
            SRTPKey.random(.aesCM128HMACSHA1, using: &generator)
        )
        let isLeft = plan.peer.localSSRC == 1
        plan.peer.protection = .keys(send: isLeft ? one : other, receive: isLeft ? other : one)
    }

    @Test(
        "Without RTCP, both sides hear the other's file from its first sample, within 0.2 s of the answer",
        arguments: Protection.allCases)
    func both(protection: Protection) throws {
        let left = Files()
        let right = Files()
        var leftRecording = left.recording
        var rightRecording = right.recording
        var call = try VirtualCall(leftRings: left.forCall, rightRings: right.forCall) { plan in
            plan.audio = Self.behaviour
            plan.codec = .pcmu
            plan.peer.clockRate = 8_000
            plan.peer.sendPayloadType = 0
            plan.peer.receivePayloadType = 0
            if plan.peer.localSSRC == 2 { plan.start = .withFirstPacket(noLaterThan: .milliseconds(200)) }
            Self.protect(&plan, protection)
        }
        call.deliversControl = false
        call.travel = .milliseconds(30)
        try call.run(seconds: 1)

        for recorded in [Files.samples(&leftRecording), Files.samples(&rightRecording)] {
            #expect(recorded.count >= 43_200, "the recording begins with the peer's first packet")
            #expect(Self.shareOfBurst(in: recorded, 0..<200) > 0.9, "the file's beginning is heard, and soon")
        }
        let reports = call.reports
        #expect(reports.left.peer.packetsReceived > 40 && reports.right.peer.packetsReceived > 40)
        let isFlowing = call.left.pointee.peer.isFlowing
        #expect(!isFlowing, "that is reported after a report of the peer, or three seconds")
    }

    @Test("A peer that listens and sends nothing hears a file from its first sample, a second after our first frame")
    func listener() throws {
        let left = Files()
        let right = Files()
        var heard = right.recording
        var call = try VirtualCall(leftRings: left.forCall, rightRings: right.forCall) { $0.audio = Self.behaviour }
        call.right.pointee.setDirection(sends: false, receives: true)
        call.deliversControl = false
        try call.run(seconds: 1.5)
        let recorded = Files.samples(&heard)
        #expect(Self.shareOfBurst(in: recorded, 0..<980) < 0.01)
        #expect(Self.shareOfBurst(in: recorded, 980..<1_200) > 0.7)
    }

    /// Packets and bytes of RTP payload that left has sent, and frames that it has run.
    private static func sent(_ call: borrowing VirtualCall) -> (packets: Int, bytes: Int, frames: Int) {
        let report = call.reports.left
        return (report.peer.packetsSent, report.peer.payloadBytesSent, report.call.framesRun)
    }

    private static func limited(
        _ condition: MediaCallPlan.SoundCondition, isPlain: Bool = false, rings: consuming CallRings = CallRings(),
        source: AudioBehaviour.Source = .tone(frequencyHz: 440, levelDBFS: -12)
    ) throws -> VirtualCall {
        var call = try VirtualCall(leftRings: rings) { plan in
            plan.codec = .pcmu
            plan.peer.clockRate = 8_000
            plan.peer.sendPayloadType = 0
            plan.peer.receivePayloadType = 0
            if isPlain { plan.peer.protection = .plain }
            guard plan.peer.localSSRC == 1 else { return }
            plan.soundCondition = condition
            plan.audio = AudioBehaviour(source: source)
        }
        call.isConnected = false
        return call
    }

    @Test(
        "A peer from which nothing has come gets 2,000 bytes and a packet every five seconds, until it is there",
        arguments: [MediaCallPlan.SoundCondition.confirmed, .heard])
    func limit(condition: MediaCallPlan.SoundCondition) throws {
        var call = try Self.limited(condition)
        try call.run(seconds: 1)
        // Of 172 bytes with the header: the twelfth reaches 2,000.
        #expect(Self.sent(call).packets == 12 && Self.sent(call).frames >= 49)
        try call.run(seconds: 31)
        let (packets, bytes, _) = Self.sent(call)
        #expect(
            packets == 12 + 6 && bytes + packets * 12 == 18 * 172, "3,096 bytes in the 32 s that SIP waits for an ACK")
        call.left.pointee.liftSoundLimit()
        try call.run(seconds: 1)
        #expect(Self.sent(call).packets >= packets + 49)
    }

    @Test("Without a condition sound goes out at once, as to one that we have called")
    func unlimited() throws {
        var call = try Self.limited(.none)
        try call.run(seconds: 1)
        #expect(Self.sent(call).packets >= 49)
    }

    @Test("A packet or a report of the peer lifts the limit", arguments: [true, false])
    func heard(sendsMedia: Bool) throws {
        var call = try Self.limited(.heard)
        try call.run(seconds: 1)
        call.isConnected = true
        if !sendsMedia { call.right.pointee.setDirection(sends: false, receives: true) }
        // A report comes within some seconds.
        try call.run(seconds: sendsMedia ? 0.1 : 10)
        let before = Self.sent(call).packets
        try call.run(seconds: 1)
        #expect(Self.sent(call).packets >= before + 49)
    }

    @Test("Another host in a later description is limited again where all may call, and the same host is not")
    func redirected() throws {
        for (condition, host, isLimited) in [
            (MediaCallPlan.SoundCondition.heard, "192.0.2.66", true), (.heard, "192.0.2.2", false),
            (.confirmed, "192.0.2.66", false),
        ] {
            var call = try Self.limited(condition)
            call.left.pointee.liftSoundLimit()
            try call.run(seconds: 1)
            let there = try #require(SocketAddress(host: host, port: 7_000))
            call.left.pointee.redirect(to: there, control: nil, at: call.now)
            let before = Self.sent(call).packets
            try call.run(seconds: 1)
            #expect((Self.sent(call).packets - before == 12) == isLimited, "\(host)")
        }
    }

    @Test(
        "A stranger's packet lifts the limit for the stranger alone: the described address is limited when the guess ends"
    )
    func guessEnds() throws {
        var call = try Self.limited(.heard, isPlain: true)
        try call.run(seconds: 1)
        let stranger = try #require(SocketAddress(host: "203.0.113.9", port: 4_000))
        var bytes: [UInt8] = [0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9] + Array(repeating: 0xff, count: 160)
        do {
            var elements = bytes.mutableSpan
            var span = elements.mutableBytes
            _ = call.left.pointee.receive(&span, isControl: false, from: DatagramPath(to: stranger), arrival: call.now)
        }
        var before = Self.sent(call).packets
        try call.run(seconds: 9)
        #expect(Self.sent(call).packets >= before + 449)
        before = Self.sent(call).packets
        try call.run(seconds: 4)
        #expect((12...12 + 51).contains(Self.sent(call).packets - before))
        before = Self.sent(call).packets
        try call.run(seconds: 1.5)
        #expect(Self.sent(call).packets == before)
    }

    @Test("A file waits for the end of the limit, so that nothing of it is lost")
    func fileAfterLimit() throws {
        let left = Files()
        var call = try Self.limited(.confirmed, rings: left.forCall, source: Self.behaviour.source)
        try call.run(seconds: 3)
        var hasBegun = call.left.pointee.hasBegun
        #expect(!hasBegun)
        call.left.pointee.liftSoundLimit()
        try call.run(seconds: 0.1)
        hasBegun = call.left.pointee.hasBegun
        #expect(hasBegun)
    }

    @Test("A tone, which has no beginning to lose, goes out with the first frame")
    func tone() throws {
        let right = Files()
        var heard = right.recording
        var call = try VirtualCall(rightRings: right.forCall) { plan in
            if plan.peer.localSSRC == 2 { plan.audio = AudioBehaviour(source: .silence, recording: "") }
        }
        call.right.pointee.setDirection(sends: false, receives: true)
        call.deliversControl = false
        try call.run(seconds: 0.4)
        let recorded = Files.samples(&heard)
        #expect(recorded.contains { abs(Int($0)) > 4_000 })
    }

    @Test("A call on the sound card is recorded from a second on if the peer sends nothing")
    func silentPeerOfCard() throws {
        let right = Files()
        var kept = right.recording
        var call = try VirtualCall(rightRings: right.forCall) { plan in
            if plan.peer.localSSRC == 2 { plan.audio = AudioBehaviour(source: .card, recording: "") }
        }
        call.isConnected = false
        var work = SampleBuffer(capacity: CardMixer.tickSamples)
        for (seconds, isRecorded) in [(0.9, false), (0.3, true)] {
            try call.run(seconds: seconds)
            call.right.pointee.hearTick(at: call.now, through: &work)
            #expect(Files.samples(&kept).isEmpty != isRecorded)
        }
    }

    @Test("A call on the sound card brings the peer's sound to the loudspeaker from the first packet on")
    func card() throws {
        var call = try VirtualCall { plan in
            if plan.peer.localSSRC == 2 { plan.audio = AudioBehaviour(source: .card) }
        }
        call.deliversControl = false
        try call.run(seconds: 0.2)
        var work = SampleBuffer(capacity: CardMixer.tickSamples)
        var loudest = 0
        for _ in 0..<16 {
            call.right.pointee.hearTick(at: call.now, through: &work)
            call.right.pointee.audio.withContribution { samples in
                for index in samples.indices { loudest = max(loudest, abs(Int(samples[index]))) }
            }
        }
        let isFlowing = call.right.pointee.peer.isFlowing
        #expect(loudest > 4_000 && !isFlowing)
    }
}
