import AudioKit
import Peering
import Realtime
import SecureTransport
import TestSupport
import Testing

@testable import CallMedia
@testable import CardAudio
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
