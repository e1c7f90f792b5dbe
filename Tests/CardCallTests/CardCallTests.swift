import CScriptedCard
import CardSupport
import Foundation
import CallMedia
import MediaEngine
import Core
import AudioKit
import Playout
import Realtime
import SecureTransport
import Synchronization
import TestSupport
import Testing
@testable import AudioDevices

/// Whole calls between two engines, one of which has a sound card behind the real libasound, in real time.
@Suite("Calls on a sound card", .witnessed, .serialized, .timeLimit(.minutes(5)))
struct CardCallTests {
    @Test("A call plays on the card and sends what it captures; the card goes and comes back, and the call continues")
    func life() async throws {
        let card = try ScriptedCard()
        let call = try CardCall(playback: "card", capture: "card")
        try await call.card(.running)
        try await call.hearsTone()

        card.control.absent_errno = ENODEV
        try await call.card(.lost(errno: ENODEV))
        let before = try await call.report()
        try await call.exchanges(packets: 25, after: before)
        let silent = try await call.report()
        #expect(silent.call.framesSkipped == 0 && silent.playout.packetsLost == 0)

        card.control.absent_errno = 0
        try await call.card(.running)
        try await call.hearsTone()
        let report = try await call.end()
        #expect(report.sound?.callSamplesLost ?? -1 < 4_800)
        withExtendedLifetime(card) {}
    }

    @Test("A call on a missing card continues without it, and has sound when it comes")
    func late() async throws {
        let card = try ScriptedCard()
        card.control.absent_errno = ENODEV
        let call = try CardCall(playback: "card", capture: "card")
        try await call.card(.unavailable(CardFailure(direction: .playback, errno: ENODEV)))
        try await call.exchanges(packets: 25, after: try await call.report())
        // A watchdog does not starve.
        _ = call.device.areWorkersAlive()
        try await call.exchanges(packets: 5, after: try await call.report())
        #expect(call.device.areWorkersAlive())
        card.control.absent_errno = 0
        try await call.card(.running)
        try await call.hearsTone()
        _ = try await call.end()
        withExtendedLifetime(card) {}
    }

    @Test("Cards whose clocks differ from the machine's by 300 millionths lose nothing in a call")
    func drift() async throws {
        let card = try ScriptedCard(rate: 44_100)
        card.control.ppm = (300, -300)
        let call = try CardCall(playback: "card", capture: "card")
        try await call.card(.running)
        try await call.hearsTone()
        try await call.exchanges(packets: 100, after: try await call.report())
        let statistics = try #require(call.device.cardStatistics)
        #expect(statistics.playback.cardFrames > 44_100 && statistics.capture.cardFrames > 44_100)
        let budget = DelayBudget(try await call.report(), card: statistics)
        #expect(budget.sending.contains { $0.name == "capture_card" && $0.milliseconds > 0 })
        #expect(budget.receiving.contains { $0.name == "playback_card" && $0.milliseconds > 0 })
        #expect(budget.totalMilliseconds > 30)
        _ = try await call.end()
        withExtendedLifetime(card) {}
    }

    @Test("A call plays into PulseAudio's null sink and sends what its monitor hears")
    func pulse() async throws {
        let server = try PulseServer()
        let card = try ScriptedCard(more: server.pcms)
        let call = try CardCall(playback: "spk", capture: "spkmon")
        try await call.card(.running)
        try await call.hearsTone()
        let report = try await call.end()
        #expect(report.playout.packetsLost == 0)
        withExtendedLifetime((server, card)) {}
    }
}

/// A caller that sends a tone, and a device on a card with a cable from its output to its input.
final class CardCall: Sendable {
    let caller: MediaEngine
    let device: MediaEngine
    private let events = CardEventLog()
    private let callerID: MediaCallID
    private let deviceID: MediaCallID

    init(playback: String, capture: String) throws {
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let configuration = MediaEngineConfiguration(bindAddress: loopback, realtimePriority: nil)
        var withCard = configuration
        var sound = CallSound(AudioDeviceConfiguration(playback: playback, capture: capture))
        // The tone that comes back is an echo.
        sound.processing.echoCancellation = false
        sound.processing.noiseSuppression = false
        sound.processing.gainControl = false
        withCard.sound = sound
        caller = try MediaEngine(configuration) { _ in }
        device = try MediaEngine(withCard) { [events] in events.add($0) }
        var generator = SeededGenerator(seed: 1)
        let (there, back) = (
            SRTPKey.random(.aeadAES128GCM, using: &generator), SRTPKey.random(.aeadAES128GCM, using: &generator)
        )
        let (atCaller, atDevice) = (caller.place(), device.place(usesCard: true))
        func plan(
            to remote: SocketAddress, local: UInt32, send: SRTPKey, receive: SRTPKey, audio: AudioBehaviour,
            start: MediaCallPlan.Start
        ) -> MediaCallPlan {
            MediaCallPlan(
                peer: PeerPlan(
                    transport: .direct(to: remote), protection: .keys(send: send, receive: receive),
                    remoteSSRC: 3 - local, localSSRC: local, canonicalName: "test@handset", sendPayloadType: 111,
                    receivePayloadType: 111, randomSeed: UInt64(local)),
                encoder: EncoderSettings(), playout: PlayoutConfiguration(), audio: audio, start: start)
        }
        deviceID = try device.start(
            plan(
                to: atCaller.localAddress, local: 1, send: back, receive: there, audio: AudioBehaviour(source: .card),
                start: .withFirstPacket(noLaterThan: .milliseconds(200))), at: atDevice)
        callerID = try caller.start(
            plan(
                to: atDevice.localAddress, local: 2, send: there, receive: back,
                audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)), start: .atOnce), at: atCaller)
    }

    /// Waits for an event of the card that has not been waited for.
    func card(_ event: CardEvent) async throws { try await events.next(event) }

    func report() async throws -> MediaReport { try #require(await device.report(on: deviceID)) }

    /// Waits until the tone has gone out on the loudspeaker and come in at the microphone.
    func hearsTone() async throws {
        try await wait("the tone comes back from the card") { report in
            guard let sound = report.sound else { return false }
            return sound.loudspeakerDBFS > -20 && sound.microphoneDBFS > -20
        }
    }

    /// Waits until so many more packets have been sent and received.
    func exchanges(packets: Int, after before: MediaReport) async throws {
        try await wait("media goes on") { report in
            report.peer.packetsSent >= before.peer.packetsSent + packets
                && report.peer.packetsReceived >= before.peer.packetsReceived + packets
        }
    }

    private func wait(_ what: String, until isThere: (MediaReport) -> Bool) async throws {
        let end = MonotonicClock.now.advanced(by: .seconds(20))
        while MonotonicClock.now < end {
            if isThere(try await report()) { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        Issue.record("not within 20 s: \(what); \(try await report())")
    }

    /// Hangs up.
    func end() async throws -> MediaReport {
        let last = try await report()
        caller.stop(callerID)
        device.stop(deviceID)
        caller.shutdown()
        device.shutdown()
        return last
    }
}

/// What happened to a card, each event to be waited for once.
final class CardEventLog: Sendable {
    private let events = Mutex<[CardEvent]>([])

    func add(_ event: MediaEvent) {
        guard case .card(let event) = event else { return }
        events.withLock { $0.append(event) }
    }

    /// Waits for `event`, and forgets those before it.
    func next(_ event: CardEvent) async throws {
        try await until {
            events.withLock { events in
                guard let index = events.firstIndex(of: event) else { return false }
                events.removeFirst(index + 1)
                return true
            }
        }
    }
}
