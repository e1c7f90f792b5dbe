import AudioDevices
import AudioKit
import CardSupport
import Foundation
import CallMedia
import MediaEngine
import Core
import Playout
import Realtime
import SecureTransport
import TestSupport
import Testing

/// Several calls that share a card by holding, in real time: whose sound is where while the card goes from call to call.
@Suite("Calls that hold each other on a sound card", .witnessed, .serialized, .timeLimit(.minutes(5)))
struct HoldTests {
    /// Each caller sends a tone of its own; the card's output is its input, so whoever has the card hears itself.
    private static let tones = [440.0, 1_500]

    @Test(
        "The card goes to a newer call, to the one that is given it, and back when a call ends, and the sound with it")
    func soundFollowsTheCard() async throws {
        let card = try ScriptedCard()
        let bench = try HoldBench(tones: Self.tones)
        let first = try bench.begin(0)
        try await bench.isAlone(first, besides: [])
        // A newer one comes.
        let second = try bench.begin(1)
        try await bench.isAlone(second, besides: [first])
        // The first gets it back by hand, and then ends.
        #expect(bench.device.giveCard(to: first))
        try await bench.isAlone(first, besides: [second])
        bench.end(0)
        try await bench.isAlone(second, besides: [])
        bench.end(1)
        let heard = try bench.recordings()
        for (index, samples) in heard.enumerated() {
            let parts = Part.of(samples, own: Self.tones[index], other: Self.tones[1 - index])
            // Three times 0.6 s and more were its own for the first, of which some may be lost to the machine's other work.
            #expect(parts.count { $0 == .own } >= 6, "call \(index + 1): \(parts)")
            // What the card still had of the other when it changed hands is heard for a moment: the cable is a room, too.
            #expect(Part.longest(.other, in: parts) <= 2, "call \(index + 1): \(parts)")
            #expect(Part.longest(.silence, in: parts) >= 3, "call \(index + 1): \(parts)")
        }
        withExtendedLifetime(card) {}
    }

    @Test("Of three calls the end of one that waits changes nothing, and that of the one that talks goes to the newest")
    func order() async throws {
        let card = try ScriptedCard()
        let bench = try HoldBench(tones: [440, 1_500, 3_000])
        let calls = try (0..<3).map { try bench.begin($0) }
        try await bench.isAlone(calls[2], besides: [calls[0], calls[1]])
        bench.end(1)
        try await bench.isAlone(calls[2], besides: [calls[0]])
        #expect(!bench.device.giveCard(to: calls[1]))
        bench.end(2)
        try await bench.isAlone(calls[0], besides: [])
        bench.end(0)
        withExtendedLifetime(card) {}
    }
}

/// What a tenth of a second of a recording holds.
private enum Part: String, CustomStringConvertible {
    case own, other, silence

    var description: String { rawValue }

    static func of(_ samples: [Int16], own: Double, other: Double) -> [Part] {
        stride(from: 0, to: samples.count - 4_799, by: 4_800).map { start in
            let window = samples[start..<(start + 4_800)]
            let (mine, theirs) = (amplitude(window, own), amplitude(window, other))
            // The tones have an amplitude of 8 000.
            if max(mine, theirs) < 800 { return .silence }
            return mine >= theirs ? .own : .other
        }
    }

    /// The longest row of `part`, what is before the first sound and behind the last not counted.
    static func longest(_ part: Part, in all: [Part]) -> Int {
        guard let first = all.firstIndex(where: { $0 != .silence }), let last = all.lastIndex(where: { $0 != .silence })
        else { return 0 }
        return all[first...last].split(whereSeparator: { $0 != part }).map(\.count).max() ?? 0
    }

    /// A tone's amplitude (Goertzel).
    private static func amplitude(_ samples: ArraySlice<Int16>, _ frequency: Double) -> Double {
        let coefficient = 2 * cos(2 * .pi * frequency / 48_000)
        var (one, two) = (0.0, 0.0)
        for sample in samples { (one, two) = (Double(sample) + coefficient * one - two, one) }
        let power = one * one + two * two - coefficient * one * two
        return 2 * max(0, power).squareRoot() / Double(samples.count)
    }
}

/// A device with a card, and callers with a tone each, that record what they hear.
private final class HoldBench {
    let device: MediaEngine
    private let callers: [MediaEngine]
    private let tones: [Double]
    private let folder: String
    private var begun: [Int: (atCaller: MediaCallID, atDevice: MediaCallID)] = [:]
    private var generator = SeededGenerator(seed: 3)

    init(tones: [Double]) throws {
        self.tones = tones
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("hold-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let configuration = MediaEngineConfiguration(bindAddress: loopback, realtimePriority: nil)
        var sound = CallSound(AudioDeviceConfiguration(playback: "card", capture: "card"))
        sound.sharing = .hold
        sound.processing.echoCancellation = false
        sound.processing.noiseSuppression = false
        sound.processing.gainControl = false
        var withCard = configuration
        withCard.sound = sound
        device = try MediaEngine(withCard) { _ in }
        callers = try tones.map { _ in try MediaEngine(configuration) { _ in } }
    }

    deinit {
        for caller in callers { caller.shutdown() }
        device.shutdown()
        try? FileManager.default.removeItem(atPath: folder)
    }

    private func path(_ index: Int) -> String { "\(folder)/heard-\(index).wav" }

    /// Has a caller call; the device's name for the call.
    func begin(_ index: Int) throws -> MediaCallID {
        let keys = (
            SRTPKey.random(.aeadAES128GCM, using: &generator), SRTPKey.random(.aeadAES128GCM, using: &generator)
        )
        let (atCaller, atDevice) = (callers[index].place(), device.place(usesCard: true))
        let (ours, theirs) = (UInt32(2 * index + 1), UInt32(2 * index + 2))
        func plan(
            to remote: SocketAddress, local: UInt32, remote source: UInt32, send: SRTPKey, receive: SRTPKey,
            audio: AudioBehaviour, start: MediaCallPlan.Start
        ) -> MediaCallPlan {
            MediaCallPlan(
                peer: PeerPlan(
                    transport: .direct(to: remote), protection: .keys(send: send, receive: receive),
                    remoteSSRC: source, localSSRC: local, canonicalName: "test@handset", sendPayloadType: 111,
                    receivePayloadType: 111, randomSeed: UInt64(local)),
                encoder: EncoderSettings(), playout: PlayoutConfiguration(), audio: audio, start: start)
        }
        let here = try device.start(
            plan(
                to: atCaller.localAddress, local: ours, remote: theirs, send: keys.0, receive: keys.1,
                audio: AudioBehaviour(source: .card), start: .withFirstPacket(noLaterThan: .milliseconds(200))),
            at: atDevice)
        let there = try callers[index].start(
            plan(
                to: atDevice.localAddress, local: theirs, remote: ours, send: keys.1, receive: keys.0,
                audio: AudioBehaviour(
                    source: .tone(frequencyHz: tones[index], levelDBFS: -12), recording: path(index)), start: .atOnce),
            at: atCaller)
        begun[index] = (there, here)
        return here
    }

    /// Hangs a call up.
    func end(_ index: Int) {
        guard let call = begun.removeValue(forKey: index) else { return }
        callers[index].stop(call.atCaller)
        device.stop(call.atDevice)
    }

    /// Waits until `call` has the card and `others` wait, and then until 0.6 s of it have been sent and heard.
    func isAlone(_ call: MediaCallID, besides others: [MediaCallID]) async throws {
        #expect(device.cardHolder == call || others.isEmpty)
        try await wait("\(call) has the card") {
            guard let own = await device.report(on: call)?.sound, !own.isHeld, own.loudspeakerDBFS > -20 else {
                return false
            }
            for other in others {
                guard await device.report(on: other)?.sound?.isHeld == true else { return false }
            }
            return true
        }
        let before = try #require(await device.report(on: call))
        try await wait("sound goes on") {
            guard let now = await device.report(on: call) else { return false }
            return now.peer.packetsSent >= before.peer.packetsSent + 30
                && now.peer.packetsReceived >= before.peer.packetsReceived + 30
        }
    }

    private func wait(_ what: String, until isThere: () async -> Bool) async throws {
        let end = MonotonicClock.now.advanced(by: .seconds(20))
        while MonotonicClock.now < end {
            if await isThere() { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        Issue.record("not within 20 s: \(what)")
    }

    /// What each caller has heard; to be called when all calls have ended.
    func recordings() throws -> [[Int16]] {
        for caller in callers { caller.shutdown() }
        return try tones.indices.map { try AudioFileReader.samples(ofFile: path($0)) }
    }
}
