import AudioDevices
@testable import CallAgent
import CallControl
import ConfigReader
import CallMedia
import MediaEngine
import AudioKit
import TestSupport
import Testing

/// Devices whose behaviour is a sound card. ALSA's `null`, which every machine has, stands for the card.
@Suite("Devices on a sound card, with real sockets", .witnessed, .timeLimit(.minutes(5)))
struct CardDeviceTests {
    private let tone = AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12))

    private func card(_ severalCalls: AudioConfiguration.SeveralCalls) -> (inout DeviceConfiguration) -> Void {
        {
            $0.behaviour.source = .card
            $0.audio.playback = "null"
            $0.audio.capture = "null"
            $0.audio.severalCalls = severalCalls
        }
    }

    @Test(
        "A call that comes in talks on the card, and its report tells how the card was, and where its delay comes from",
        arguments: [(.opus, 6.5, 0, true), (.pcma, 1.875, 2, false)] as [(SoundCodec, Double, Double, Bool)])
    func talks(codec: SoundCodec, encoder: Double, decoder: Double, isProcessed: Bool) async throws {
        let site = try await Site()
        let desk = try await site.device(
            "echo", named: "desk", answer: AnswerPolicy(manner: .answer(after: .zero))
        ) {
            card(.hold)(&$0)
            $0.media.codecs = [codec]
            $0.audio.cancelsEcho = isProcessed
            $0.audio.suppressesNoise = isProcessed
            $0.audio.controlsGain = isProcessed
        }
        let caller = try await site.device("caller", named: "mobile")
        let call = await caller.device.call("echo", audio: tone)
        _ = try await caller.flowing()
        _ = try await desk.flowing()
        await caller.device.hangUp(call)
        let report = try #require(try await desk.ended().report)
        #expect(report.sound?.ticks ?? 0 > 0)
        let statistics = try #require(desk.device.sharedMedia.cardStatistics)
        let budget = DelayBudget(report, card: statistics)
        func stage(_ name: String) -> Double? {
            (budget.sending + budget.receiving).first { $0.name == name }?.milliseconds
        }
        #expect(stage("encoder") == encoder && stage("decoder") == decoder)
        #expect(stage("speakerphone") == (isProcessed ? 10 : 0))
        #expect(stage("frame") == 20)
        try await site.close(caller, desk)
    }

    @Test("INV-11: With several_calls: refuse, who calls while the card is taken hears busy, and so do we who call")
    func refuses() async throws {
        let site = try await Site(users: ["echo", "caller", "third"])
        let policy = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(8))
        let desk = try await site.device("echo", named: "desk", answer: policy, card(.refuse))
        let caller = try await site.device("caller", named: "mobile")
        let third = try await site.device("third", named: "other")
        let call = await caller.device.call("echo", audio: tone)
        _ = try await caller.flowing()
        _ = try await desk.flowing()
        _ = await third.device.call("echo", audio: tone)
        #expect(try await third.ended().record.reason == .busy)
        #expect(try await desk.ended().record.reason == .busy)
        _ = await desk.device.call("third", audio: AudioBehaviour(source: .card))
        let ours = try await desk.ended().record
        #expect(ours.reason == .internalError || ours.reason == .dialFailed, "\(ours)")
        #expect(ours.error.map { "\($0)" }?.contains("another call has the sound card") == true, "\(ours)")
        await caller.device.hangUp(call)
        #expect(try await desk.ended().record.reason == .completed)
        try await site.close(caller, desk, third)
    }

    @Test("With several_calls: mix, a second call is taken beside the first")
    func mixes() async throws {
        let site = try await Site(users: ["echo", "caller", "third"])
        let policy = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(8))
        let desk = try await site.device("echo", named: "desk", answer: policy, card(.mix))
        let caller = try await site.device("caller", named: "mobile")
        let third = try await site.device("third", named: "other")
        _ = await caller.device.call("echo", audio: tone)
        _ = try await desk.flowing()
        _ = await third.device.call("echo", audio: tone)
        _ = try await desk.flowing()
        try await site.close(caller, desk, third)
    }

    /// Two accounts of one process with one card, and two that call them.
    private struct SharedCard {
        let site: Site
        let media: SharedMedia
        /// The accounts.
        let first: Handheld
        let second: Handheld
        let callers: [Handheld]

        func close() async throws {
            for handheld in [first, second] + callers { await handheld.device.shutDown() }
            await media.close()
            try await site.close()
        }
    }

    private func share(_ severalCalls: AudioConfiguration.SeveralCalls) async throws -> SharedCard {
        let site = try await Site(users: ["first", "second", "caller", "other"])
        let media = try site.media(card(severalCalls))
        let policy = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(8))
        return try await SharedCard(
            site: site, media: media,
            first: site.device("first", named: "a", answer: policy, sharing: media, card(severalCalls)),
            second: site.device("second", named: "b", answer: policy, sharing: media, card(severalCalls)),
            callers: [site.device("caller", named: "c"), site.device("other", named: "d")])
    }

    /// Whether the only call of an account waits for the card.
    private func isHeld(_ account: Handheld) async throws -> Bool {
        let calls = await account.device.status.calls
        #expect(calls.count == 1)
        return try #require(calls.first).isHeld
    }

    @Test(
        "Of two accounts with one card and several_calls: hold, the newer call has it, and the other waits until it ends"
    )
    func sharedHold() async throws {
        let shared = try await share(.hold)
        _ = await shared.callers[0].device.call("first", audio: tone)
        _ = try await shared.first.flowing()
        try await until { try await !isHeld(shared.first) }
        let newer = await shared.callers[1].device.call("second", audio: tone)
        _ = try await shared.second.flowing()
        _ = try await shared.callers[1].flowing()
        try await until {
            let (waits, alsoWaits) = try await (isHeld(shared.first), isHeld(shared.second))
            return waits && !alsoWaits
        }
        await shared.callers[1].device.hangUp(newer)
        #expect(try await shared.second.ended().record.reason == .completed)
        try await until { try await !isHeld(shared.first) }
        try await shared.close()
    }

    @Test(
        "INV-11: Of two accounts with one card and several_calls: refuse, who calls one during a call of the other hears busy"
    )
    func sharedRefusal() async throws {
        let shared = try await share(.refuse)
        let call = await shared.callers[0].device.call("first", audio: tone)
        _ = try await shared.first.flowing()
        // One that hangs up before takes its call back.
        _ = try await shared.callers[0].flowing()
        _ = await shared.callers[1].device.call("second", audio: tone)
        #expect(try await shared.callers[1].ended().record.reason == .busy)
        #expect(try await shared.second.ended().record.reason == .busy)
        _ = await shared.second.device.call("other", audio: AudioBehaviour(source: .card))
        let outgoing = try await shared.second.ended().record
        #expect(outgoing.error.map { "\($0)" }?.contains("another call has the sound card") == true, "\(outgoing)")
        await shared.callers[0].device.hangUp(call)
        #expect(try await shared.first.ended().record.reason == .completed)
        _ = await shared.callers[1].device.call("second", audio: tone)
        _ = try await shared.second.flowing()
        try await shared.close()
    }

    @Test("Of two accounts with one card and several_calls: mix, neither call waits for it")
    func sharedMix() async throws {
        let shared = try await share(.mix)
        _ = await shared.callers[0].device.call("first", audio: tone)
        _ = try await shared.first.flowing()
        _ = await shared.callers[1].device.call("second", audio: tone)
        _ = try await shared.second.flowing()
        let (waits, alsoWaits) = try await (isHeld(shared.first), isHeld(shared.second))
        #expect(!waits && !alsoWaits)
        try await shared.close()
    }
}

struct CallTonePolicyTests {
    @Test(
        "The tone is that of the call that matters most",
        arguments: [
            ([], nil), ([.quiet], nil), ([.calling], .ringBack), ([.ringing], .ring), ([.talking], nil),
            ([.talking, .ringing], .ring), ([.talking, .calling], nil), ([.refused(.busy)], .busy),
            ([.refused(.noAnswer)], .congestion), ([.refused(.completed)], nil),
            ([.calling, .refused(.busy)], .ringBack), ([.refused(.busy), .calling], .ringBack),
            ([.talking, .refused(.busy)], nil),
        ] as [([CallTonePolicy.Phase], CallTone?)])
    func tone(phases: [CallTonePolicy.Phase], expected: CallTone?) {
        #expect(CallTonePolicy.tone(for: phases) == expected)
    }
}

struct AudioConfigurationTests {
    private func read(_ text: String) throws -> (DeviceConfiguration, [ConfigProblem]) {
        let section = try ConfigDocument.read(text: text, environment: { _ in "x" })
        var problems: [ConfigProblem] = []
        return (DeviceConfiguration(section, &problems), problems)
    }

    private let account = """
        account:
          server: http://localhost:8555
          app_key: demo
          app_secret_env: A
          media_token_env: B

        """

    @Test("The audio section names the card and switches its parts")
    func section() throws {
        let (configuration, problems) = try read(
            account + """
                behaviour:
                  source: card
                audio:
                  device: by-id/usb-Headset
                  capture: none
                  several_calls: mix
                  echo_cancellation: false
                  muted: true
                """)
        #expect(problems.isEmpty)
        let sound = try #require(configuration.sound)
        #expect(sound.device.playback == "by-id/usb-Headset" && sound.device.capture == nil)
        #expect(sound.sharing == .mix && sound.isMuted && !sound.processing.echoCancellation)
        #expect(sound.processing.noiseSuppression)
        #expect(sound.device.realtimePriority == 25)
    }

    @Test("Without the behaviour card, or with no card in either direction, no card is opened")
    func none() throws {
        #expect(try read(account).0.sound == nil)
        let text = account + "behaviour:\n  source: card\naudio:\n  device: none\n"
        #expect(try read(text).0.sound == nil)
    }

    @Test("profile: pi chooses less effort, and what is said goes before")
    func profile() throws {
        let (pi, problems) = try read(account + "profile: pi\n")
        #expect(problems.isEmpty)
        let desktop = try read(account).0
        #expect(pi.media.encoder.complexity < desktop.media.encoder.complexity)
        #expect(pi.audio.echoTailMilliseconds < desktop.audio.echoTailMilliseconds)
        let said = try read(account + "profile: pi\nmedia:\n  opus:\n    complexity: 9\n").0
        #expect(said.media.encoder.complexity == 9)
        #expect(try read(account + "profile: toaster\n").1.contains { $0.key == "profile" })
    }
}
