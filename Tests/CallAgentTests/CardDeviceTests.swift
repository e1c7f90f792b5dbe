import AudioDevices
@testable import CallAgent
import CallControl
import ConfigReader
import CallMedia
import MediaEngine
import OpusCodec
import Speakerphone
import Testing

/// Devices whose behaviour is a sound card. ALSA's `null`, which every machine has, stands for the card.
@Suite("Devices on a sound card, with real sockets", .timeLimit(.minutes(5)))
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
        _ = try await caller.established()
        _ = try await desk.established()
        await caller.device.hangUp(call)
        let report = try #require(try await desk.ended().report)
        #expect(report.sound?.ticks ?? 0 > 0)
        let statistics = try #require(await desk.device.cardStatistics)
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
        _ = try await caller.established()
        _ = try await desk.established()
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
        _ = try await desk.established()
        _ = await third.device.call("echo", audio: tone)
        _ = try await desk.established()
        try await site.close(caller, desk, third)
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
