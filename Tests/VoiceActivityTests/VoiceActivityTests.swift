import TestSupport
import Testing

@testable import VoiceActivity

@Suite("Voice activity")
struct VoiceActivityTests {
    @Test("The same sound gives the same events in frames of any length", arguments: [16_000, 48_000])
    func frameLengths(rateHz: Int) {
        let speech = CallScene.speech(seed: 3, seconds: 4, rateHz: rateHz)
        func kindsAndPositions(_ milliseconds: Int) -> [String] {
            CallScene.events(speech, rateHz: rateHz, frame: rateHz * milliseconds / 1_000)
                .filter { $0.position < 3 * rateHz }.map { "\($0.kind) \($0.position)" }
        }
        let expected = kindsAndPositions(10)
        #expect(expected.contains { $0.hasPrefix("confirmed") })
        for milliseconds in [20, 30, 40, 60] {
            #expect(kindsAndPositions(milliseconds).prefix(expected.count) == expected.prefix(expected.count))
        }
    }

    @Test("Speech is found at every rate", arguments: [8_000, 16_000, 24_000, 32_000, 48_000])
    func rates(rateHz: Int) throws {
        let rate = rateHz == 32_000 ? 8_000 : rateHz
        var speech = CallScene.speech(seed: 5, seconds: 3, rateHz: rate)
        if rateHz == 32_000 { speech = speech.flatMap { [$0, $0, $0, $0] } }
        let found = CallScene.events(speech, rateHz: rateHz, frame: rateHz / 50)
        let onset = try #require(found.first { $0.kind == .confirmed })
        let truth = try #require(CallScene.onsets(speech, rateHz: rateHz).first)
        #expect(abs(onset.position - truth) <= rateHz / 10)
    }

    @Test("Half of a synthetic voice's onsets are found within 250 ms over noise and echo, none before it begins")
    func delays() {
        var onsetDelays: [Int] = []
        for seed in 1...3 as ClosedRange<UInt64> {
            let speech = CallScene.speech(seed: seed, seconds: 10)
            let said = CallScene.speech(seed: seed + 100, seconds: 10)
            var heard = CallScene.sum(speech, said, at: 1_200, dividedBy: 30)
            heard = CallScene.sum(heard, CallScene.noise(seed: seed, count: heard.count, amplitude: 30))
            let found = CallScene.events(heard, said: said, frame: 160)
            for onset in CallScene.onsets(speech) {
                let near = found.filter { onset - 400..<onset + 8_000 ~= $0.position }
                onsetDelays.append(near.first { $0.kind == .onset }.map { $0.decidedAt - onset } ?? .max)
            }
        }
        #expect(onsetDelays.count > 5)
        #expect(percentile(onsetDelays, 50) <= 250 * 8, "\(onsetDelays.sorted())")
        #expect((onsetDelays.min() ?? 0) > -400)
    }

    @Test("The end of speech is reported 0.3 s later, with the position of the end")
    func end() throws {
        var heard = CallScene.speech(seed: 9, seconds: 2)
        let last = try #require(heard.lastIndex { abs(Int($0)) > 300 })
        heard += [Int16](repeating: 0, count: 8_000)
        let ended = try #require(CallScene.events(heard, frame: 160).last)
        #expect(ended.kind == .ended)
        #expect(abs(ended.position - last) <= 8 * 150)
        #expect(8 * 290...8 * 400 ~= ended.decidedAt - ended.position)
    }

    @Test("Noise, hum, bursts, clipping and a constant are no speech")
    func noSpeech() {
        let second = 8_000
        var random = SeededGenerator(seed: 4)
        var bursts = [Int16](repeating: 0, count: 8 * second)
        for start in stride(from: second, to: bursts.count - second, by: second) {
            let length = Int.random(in: 20...400, using: &random)
            bursts = CallScene.sum(
                bursts, CallScene.noise(seed: UInt64(start), count: length, amplitude: 12_000), at: start)
        }
        let noise = CallScene.noise(seed: 1, count: 4 * second, amplitude: 3_000)
        let hum = (0..<4 * second).map { Int16($0 % 160 < 80 ? 2_000 : -2_000) }
        let clipped = CallScene.noise(seed: 2, count: 3 * second, amplitude: 32_767).map { $0 > 0 ? .max : Int16.min }
        let constant = [Int16](repeating: .max, count: 3 * second)
        for sound in [noise, hum, bursts, clipped, constant, [Int16](repeating: 0, count: 3 * second)] {
            #expect(!CallScene.events(sound, frame: 160).contains { $0.kind == .confirmed })
        }
    }

    private static let said = CallScene.speech(seed: 21, seconds: 12)

    @Test("The bot's own echo stops nothing, however loud", arguments: [1, 2, 4, 16, 100])
    func echo(divisor: Int) {
        let said = Self.said
        let quiet = CallScene.noise(seed: 8, count: said.count, amplitude: 6)
        for delay in [160, 2_400] {
            let heard = CallScene.sum(quiet, said, at: delay, dividedBy: divisor)
            let found = CallScene.events(heard, said: said, frame: 160)
            #expect(!found.contains { $0.kind == .confirmed }, "\(delay) samples")
        }
    }

    @Test("Silence, extremes and jumps between them leave finite numbers, and speech is still found afterwards")
    func finite() {
        var voice = VoiceActivity(rateHz: 8_000)
        var random = SeededGenerator(seed: 7)
        for _ in 0..<300 {
            let frame: [Int16] =
                switch Int.random(in: 0..<4, using: &random) {
                case 0: [Int16](repeating: 0, count: 80)
                case 1: [Int16](repeating: .min, count: 80)
                case 2: (0..<80).map { $0 % 2 == 0 ? .max : .min }
                default: (0..<80).map { _ in Int16.random(in: .min ... .max, using: &random) }
                }
            _ = voice.take(frame.span, sent: frame.span, gain: 1)
            #expect(voice.odds.possible.isFinite && voice.odds.certain.isFinite && voice.odds.lasting.isFinite)
        }
        let speech = CallScene.speech(seed: 2, seconds: 6)
        let empty: [Int16] = []
        var isConfirmed = false
        for start in stride(from: 0, through: speech.count - 480, by: 480) {
            let found = voice.take(speech.span.extracting(start..<start + 480), sent: empty.span)
            for index in 0..<found.count where found[index].kind == .confirmed { isConfirmed = true }
        }
        #expect(isConfirmed)
    }

    @Test("Frames that are empty, odd or far too long are taken")
    func oddFrames() {
        var voice = VoiceActivity(rateHz: 48_000)
        let empty: [Int16] = []
        let sound = CallScene.speech(seed: 1, seconds: 2, rateHz: 48_000)
        _ = voice.take(empty.span, sent: empty.span)
        _ = voice.take(sound.span.extracting(0..<7), sent: empty.span)
        let found = voice.take(sound.span.extracting(7..<sound.count), sent: sound.span)
        #expect(voice.position == sound.count && found.count <= 8)
    }
}
