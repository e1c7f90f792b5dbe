internal import AudioKit
internal import Core
internal import Glibc

/// Synthetic sentences without meaning: voiced sounds, hisses, stops and pauses made with formants, so that codecs and
/// ``SpeechQualityAnalysis`` treat them like speech. (ITU-T P.50 has such voices too.)
///
/// Two voices alternate, a low one and a high one. The same seed gives the same samples.
public struct SyntheticSpeech: Sendable {
    private var random: SplitMix64
    private let levelDBFS: Double

    /// Makes a speaker.
    ///
    /// - Parameters:
    ///   - seed: What is said.
    ///   - levelDBFS: Root of the mean square where it sounds, as ``LevelMeter`` has it, −60 … −18.
    public init(seed: UInt64 = 1, levelDBFS: Double = -26) {
        // Expectations of tests are made with these seeds.
        random = SplitMix64(seed: seed &* 0x9E37_79B9_7F4A_7C15 &+ 1)
        self.levelDBFS = min(-18, max(-60, levelDBFS))
    }

    /// About `seconds` of it at 48 kHz: whole sentences with pauses of half a second.
    public mutating func samples(seconds: Double) -> [Int16] {
        let wanted = Int(seconds * Double(AudioFormat.sampleRate))
        let pause = [Float](repeating: 0, count: AudioFormat.sampleRate / 2)
        var made = pause
        var isLow = true
        while made.count < wanted {
            made += sentence(Voice(isLow: isLow)) + pause
            isLow.toggle()
        }
        // Pauses are not part of the level.
        let powers = stride(from: 0, to: made.count - 960, by: 960).map { start in
            made[start..<start + 960].reduce(0) { $0 + $1 * $1 } / 960
        }
        let active = powers.filter { $0 > (powers.max() ?? 0) * 1e-3 }
        let rms = (active.reduce(0, +) / Float(max(1, active.count))).squareRoot()
        let gain = rms > 0 ? Float(32_767 / 2.0.squareRoot() * pow(10, levelDBFS / 20)) / rms : 0
        return made.map { Int16(max(-32_767, min(32_767, ($0 * gain).rounded()))) }
    }

    /// How high a voice is.
    private struct Voice {
        let pitchHz: Float
        let size: Float

        init(isLow: Bool) { (pitchHz, size) = isLow ? (115, 1) : (205, 1.16) }
    }

    /// One sound: formants in Hz, how loud it is voiced, how loud it hisses and where, and how long it lasts.
    fileprivate struct Sound {
        var formants: (Float, Float, Float)
        var voiced: Float
        var hiss: Float
        var hissHz: Float
        var milliseconds: Int
    }

    private static let vowels: [(Float, Float, Float)] = [
        (730, 1_090, 2_440), (530, 1_840, 2_480), (270, 2_290, 3_010), (570, 840, 2_410), (300, 870, 2_240),
        (660, 1_720, 2_410), (490, 1_350, 1_690),
    ]
    private static let consonants: [[Sound]] = [
        [Sound(formants: (300, 1_700, 2_600), voiced: 0, hiss: 0.9, hissHz: 6_200, milliseconds: 110)],
        [Sound(formants: (300, 1_900, 2_600), voiced: 0, hiss: 1, hissHz: 3_400, milliseconds: 100)],
        [Sound(formants: (300, 1_100, 2_300), voiced: 0, hiss: 0.25, hissHz: 5_000, milliseconds: 90)],
        [Sound(formants: (270, 1_000, 2_200), voiced: 0.45, hiss: 0, hissHz: 3_000, milliseconds: 70)],
        [Sound(formants: (270, 1_500, 2_500), voiced: 0.45, hiss: 0, hissHz: 3_000, milliseconds: 65)],
        [Sound(formants: (360, 1_300, 2_700), voiced: 0.6, hiss: 0, hissHz: 3_000, milliseconds: 65)],
        [Sound(formants: (300, 1_700, 2_600), voiced: 0.3, hiss: 0.35, hissHz: 5_600, milliseconds: 80)],
        [
            Sound(formants: (350, 1_800, 2_600), voiced: 0, hiss: 0, hissHz: 4_000, milliseconds: 60),
            Sound(formants: (350, 1_800, 2_600), voiced: 0, hiss: 1.1, hissHz: 4_200, milliseconds: 22),
        ],
        [
            Sound(formants: (350, 1_400, 2_300), voiced: 0, hiss: 0, hissHz: 1_800, milliseconds: 55),
            Sound(formants: (350, 1_400, 2_300), voiced: 0, hiss: 1, hissHz: 1_900, milliseconds: 28),
        ],
        [
            Sound(formants: (250, 900, 2_200), voiced: 0.08, hiss: 0, hissHz: 900, milliseconds: 55),
            Sound(formants: (350, 900, 2_200), voiced: 0.5, hiss: 0.4, hissHz: 900, milliseconds: 12),
        ],
    ]

    /// −1…1.
    private mutating func noise() -> Float { Float(Int32(truncatingIfNeeded: random.next() >> 32)) / 2_147_483_648 }

    private mutating func sentence(_ voice: Voice) -> [Float] {
        var sounds: [Sound] = []
        for _ in 0..<Int(8 + random.next() % 4) {
            sounds += Self.consonants[Int(random.next() % UInt64(Self.consonants.count))]
            let vowel = Self.vowels[Int(random.next() % UInt64(Self.vowels.count))]
            let stress = random.next() % 3
            sounds.append(
                Sound(
                    formants: vowel, voiced: stress == 0 ? 1 : 0.7, hiss: 0.012, hissHz: 3_000,
                    milliseconds: 80 + 35 * Int(stress)))
        }
        return spoken(sounds, voice)
    }

    private mutating func spoken(_ sounds: [Sound], _ voice: Voice) -> [Float] {
        var made: [Float] = []
        let total = sounds.reduce(0) { $0 + $1.milliseconds } * 48
        made.reserveCapacity(total)
        // Where the mouth is; it moves towards each sound within some 15 ms.
        var now = sounds[0]
        now.voiced = 0
        now.hiss = 0
        var (first, second, third) = (Resonator(), Resonator(), Resonator())
        var (fourth, fifth, hissing, tilt) = (Resonator(), Resonator(), Resonator(), Resonator())
        tilt.tune(0, bandwidth: 180)
        var (phase, period, loudness, before) = (Float(0), Float(400), Float(1), Float(0))
        for sound in sounds {
            for index in 0..<sound.milliseconds * 48 {
                if index % 48 == 0 {
                    now.approach(
                        sound.formants, voiced: sound.voiced, hiss: sound.hiss, hissHz: sound.hissHz, share: 0.07)
                    first.tune(now.formants.0 * voice.size, bandwidth: 70)
                    second.tune(now.formants.1 * voice.size, bandwidth: 90)
                    third.tune(now.formants.2 * voice.size, bandwidth: 140)
                    fourth.tune(3_500 * voice.size, bandwidth: 250)
                    fifth.tune(4_600 * voice.size, bandwidth: 350)
                    hissing.tune(now.hissHz, bandwidth: 0.45 * now.hissHz)
                }
                phase += 1
                var pulse: Float = 0
                if phase >= period {
                    phase -= period
                    // A voice falls towards the end of a sentence, and no two periods are the same.
                    let place = Float(made.count) / Float(total)
                    let melody = 1.12 - 0.25 * place + 0.06 * sin(place * 19)
                    period = 48_000 / (voice.pitchHz * melody) * (1 + 0.012 * noise())
                    loudness = 1 + 0.06 * noise()
                    pulse = loudness * period.squareRoot()
                }
                let glottis = tilt.pass(pulse)
                let voiced = fifth.pass(fourth.pass(third.pass(second.pass(first.pass(glottis * now.voiced)))))
                let hiss = hissing.pass(noise()) * now.hiss
                let mixed = voiced * 8 + hiss * 0.03
                // The lips let through what changes.
                made.append(mixed - 0.9 * before)
                before = mixed
            }
        }
        return made
    }
}

extension SyntheticSpeech.Sound {
    fileprivate mutating func approach(
        _ target: (Float, Float, Float), voiced: Float, hiss: Float, hissHz: Float, share: Float
    ) {
        formants.0 += share * (target.0 - formants.0)
        formants.1 += share * (target.1 - formants.1)
        formants.2 += share * (target.2 - formants.2)
        self.voiced += 2 * share * (voiced - self.voiced)
        self.hiss += 2 * share * (hiss - self.hiss)
        // A hiss begins where it is meant to be.
        self.hissHz = self.hiss < 0.02 ? hissHz : self.hissHz + share * (hissHz - self.hissHz)
    }
}

/// A resonance with a gain of 1 at 0 Hz (Klatt).
private struct Resonator {
    private var (a, b, c) = (Float(1), Float(0), Float(0))
    private var (last, beforeLast) = (Float(0), Float(0))

    mutating func tune(_ hertz: Float, bandwidth: Float) {
        let radius = exp(-Float.pi * bandwidth / 48_000)
        c = -radius * radius
        b = 2 * radius * cos(2 * Float.pi * hertz / 48_000)
        a = 1 - b - c
    }

    mutating func pass(_ value: Float) -> Float {
        let made = a * value + b * last + c * beforeLast
        (beforeLast, last) = (last, made)
        return made
    }
}
