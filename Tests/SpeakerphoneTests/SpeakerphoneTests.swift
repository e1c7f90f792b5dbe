import Foundation
import AudioKit
import TestSupport
import Testing

/// A room with a loudspeaker and a microphone in it.
struct Room {
    /// From the loudspeaker to the microphone: direct sound and reverberation that falls by 60 dB in 200 ms.
    let response: [Float]
    /// Of the cards, in samples.
    var delay: Int

    init(delay: Int = 1_440, couplingDB: Double = -6, samples: Int = 3_000) {
        var random = SeededGenerator(seed: 5)
        var taps: [Float] = []
        for index in 0..<samples {
            let fall = exp(-6.9 * Double(index) / 9_600)
            taps.append(index < 96 ? 0 : Float(0.12 * random.normal() * fall))
        }
        taps[48] = 1
        let energy = taps.reduce(0) { $0 + $1 * $1 }.squareRoot()
        response = taps.map { $0 / energy * Float(pow(10, couplingDB / 20)) }
        self.delay = delay
    }

    /// What the microphone hears of what was played; a sparse room, so that unoptimised tests are quick.
    func echo(of played: [Int16]) -> [Float] {
        let strong = response.indices.filter { abs(response[$0]) > 0.004 }
        // Each value is made a Float once, and pointers are used: unoptimised, a call for each tap is most of the time.
        let source = played.map { Float($0) }
        var heard = [Float](repeating: 0, count: played.count + response.count + delay)
        unsafe heard.withUnsafeMutableBufferPointer { heard in
            unsafe source.withUnsafeBufferPointer { source in
                guard var first = unsafe heard.baseAddress, let values = unsafe source.baseAddress else { return }
                unsafe first += delay
                for tap in strong {
                    let (weight, place) = unsafe (response[tap], first + tap)
                    var index = 0
                    while index < source.count {
                        unsafe place[index] += weight * values[index]
                        index += 1
                    }
                }
            }
        }
        return heard
    }
}

/// Syllables of noise shaped like a voice's, with pauses.
func talk(seconds: Double, seed: UInt64, level: Double = 3_000) -> [Int16] {
    var random = SeededGenerator(seed: seed)
    let count = Int(seconds * 48_000)
    var made = [Int16](repeating: 0, count: count)
    var (start, low) = (0, 0.0)
    while start < count {
        let length = Int.random(in: 6_000...12_000, using: &random)
        let colour = Double.random(in: 0.05...0.5, using: &random)
        for index in start..<min(count, start + length) {
            low += colour * (random.normal() - low)
            let shape = sin(Double.pi * Double(index - start) / Double(length))
            made[index] = Int16(max(-32_000, min(32_000, level * shape * low / colour.squareRoot() * 2)))
        }
        start += length + Int.random(in: 1_000...5_000, using: &random)
    }
    return made
}

func meanSquare(_ samples: some Collection<Int16>) -> Double {
    samples.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(max(1, samples.count))
}

func decibels(_ power: Double, _ reference: Double) -> Double { 10 * log10(max(0.1, power) / max(0.1, reference)) }

@Suite("A speakerphone")
struct SpeakerphoneTests {
    static func only(echo: Bool = false, noise: Bool = false, gain: Bool = false) -> SpeakerphoneSettings {
        var settings = SpeakerphoneSettings()
        settings.echoCancellation = echo
        settings.noiseSuppression = noise
        settings.gainControl = gain
        return settings
    }

    struct Result {
        var sent: [Int16] = []
        var statistics = SpeakerphoneStatistics()
    }

    static func run(_ settings: SpeakerphoneSettings, played: [Int16], captured: [Int16]) throws -> Result {
        var phone = try SpeakerphoneProcessor(settings)
        var result = Result()
        for start in stride(from: 0, to: min(played.count, captured.count) - 479, by: 480) {
            var frame = Array(captured[start..<start + 480])
            var span = frame.mutableSpan
            phone.process(&span, playback: played.span.extracting(start..<start + 480))
            result.sent += frame
        }
        result.statistics = phone.statistics
        return result
    }

    static func captured(_ parts: [Float], _ near: [Int16] = [], noise: Double = 3) -> [Int16] {
        var random = SeededGenerator(seed: 11)
        return parts.indices.map { index in
            let own = index < near.count ? Float(near[index]) : 0
            let value = parts[index] + own + Float(noise * random.normal())
            return Int16(max(-32_768, min(32_767, value.rounded())))
        }
    }

    @Test(
        "Sound comes out with the reported delay: 10 ms with any part, and at once without",
        arguments: [only(echo: true), only(noise: true), only(gain: true), only(), SpeakerphoneSettings()])
    func delay(settings: SpeakerphoneSettings) throws {
        let near = talk(seconds: 1, seed: 5)
        let silence = [Int16](repeating: 0, count: near.count)
        let sent = try Self.run(settings, played: silence, captured: near).sent
        let alike = stride(from: 0, through: 960, by: 16).map { lag in
            var sum = 0.0
            for index in 36_000..<44_000 { sum += Double(near[index]) * Double(sent[index + lag]) }
            return (lag: lag, sum: sum)
        }
        let lag = try #require(alike.max { $0.sum < $1.sum }?.lag)
        let told = try SpeakerphoneProcessor(settings).delaySamples
        #expect(abs(lag - told) <= 16, "\(lag) \(told)")
    }

    @Test("The echo of a far talker goes down by 30 dB within a few seconds")
    func echo() throws {
        let far = talk(seconds: 6, seed: 1)
        let heard = Self.captured(Room().echo(of: far))
        let result = try Self.run(Self.only(echo: true), played: far, captured: heard)
        let last = 240_000..<287_000
        let loss = decibels(meanSquare(heard[last]), meanSquare(result.sent[last]))
        #expect(loss > 30, "\(loss) dB")
        let told = try #require(result.statistics.echoReturnLossEnhancementDB)
        #expect(told > 20, "\(told) dB")
        let coupling = try #require(result.statistics.echoCouplingDB)
        #expect(abs(coupling - -6) < 2.5)
        #expect(try abs(#require(result.statistics.echoDelaySamples) - 1_488) <= 24)
    }

    @Test("A delay that jumps is found again, and so is the echo")
    func jump() throws {
        let far = talk(seconds: 9, seed: 2)
        let before = Room(delay: 1_440).echo(of: far)
        let after = Room(delay: 1_440 + 14_400).echo(of: far)
        let heard = Self.captured(far.indices.map { $0 < 144_000 ? before[$0] : after[$0] })
        let result = try Self.run(Self.only(echo: true), played: far, captured: heard)
        #expect(result.statistics.realignments == 1)
        #expect(try abs(#require(result.statistics.echoDelaySamples) - (1_488 + 14_400)) <= 24)
        let last = 384_000..<431_000
        let loss = decibels(meanSquare(heard[last]), meanSquare(result.sent[last]))
        #expect(loss > 25, "\(loss) dB")
    }

    @Test("Clocks that drift apart do not bring the echo back", arguments: [-40.0, 60])
    func drift(_ ppm: Double) throws {
        let far = talk(seconds: 9, seed: 3)
        let room = Room().echo(of: far)
        let heard = Self.captured(far.indices.map { Self.value(of: room, at: Double($0) * (1 - ppm * 1e-6)) })
        let result = try Self.run(Self.only(echo: true), played: far, captured: heard)
        let last = 384_000..<431_000
        let loss = decibels(meanSquare(heard[last]), meanSquare(result.sent[last]))
        // A filter that does not follow has 15, 7 and 5 dB here.
        #expect(loss > 18, "\(loss) dB")
        #expect(abs(result.statistics.driftPPM - ppm) < max(3, abs(ppm) / 20))
    }

    /// Between the samples, by a windowed sinc.
    static func value(of samples: [Float], at place: Double) -> Float {
        let whole = Int(place)
        let share = place - Double(whole)
        guard share > 1e-9, whole >= 16, whole < samples.count - 16 else {
            return samples[min(whole, samples.count - 1)]
        }
        let height = sin(Double.pi * share) / Double.pi
        var sum = 0.0
        for tap in -15...16 {
            let distance = share - Double(tap)
            let edge = 1 - (distance / 16.5) * (distance / 16.5)
            sum += (tap % 2 == 0 ? height : -height) / distance * edge * edge * Double(samples[whole + tap])
        }
        return Float(sum)
    }

    @Test("When both talk at once the near talker is heard")
    func doubleTalk() throws {
        let far = talk(seconds: 6, seed: 4)
        var near = talk(seconds: 6, seed: 50, level: 3_000)
        for index in 0..<168_000 { near[index] = 0 }
        let echo = Room(couplingDB: -10).echo(of: far)
        let result = try Self.run(Self.only(echo: true), played: far, captured: Self.captured(echo, near))
        let both = 180_000..<287_000
        var (product, own, sent) = (0.0, 0.0, 0.0)
        for index in both {
            // The preprocessor delays by half of its window.
            let value = Double(result.sent[index])
            let wanted = Double(near[index - 480])
            product += value * wanted
            own += wanted * wanted
            sent += value * value
        }
        let likeness = product / (own * sent).squareRoot()
        #expect(likeness > 0.8, "\(likeness)")
        #expect(decibels(sent, own) > -6)
    }

    @Test("Steady noise is lowered, and a voice left alone")
    func noise() throws {
        var voice = talk(seconds: 6, seed: 8)
        for index in 0..<144_000 { voice[index] = 0 }
        let heard = Self.captured([Float](repeating: 0, count: voice.count), voice, noise: 200)
        let silence = [Int16](repeating: 0, count: voice.count)
        let result = try Self.run(Self.only(noise: true), played: silence, captured: heard)
        let quiet = 72_000..<140_000
        #expect(decibels(meanSquare(heard[quiet]), meanSquare(result.sent[quiet])) > 12)
        let loud = 150_000..<287_000
        #expect(abs(decibels(meanSquare(heard[loud]), meanSquare(result.sent[loud]))) < 3)
    }

    @Test("The gain control brings a quiet and a loud talker together")
    func gain() throws {
        let silence = [Int16](repeating: 0, count: 480_000)
        let levels = try [700.0, 6_000].map { level in
            let heard = talk(seconds: 10, seed: 9, level: level)
            return meanSquare(try Self.run(Self.only(gain: true), played: silence, captured: heard).sent[300_000...])
        }
        #expect(abs(decibels(levels[1], levels[0])) < 9, "\(decibels(levels[1], levels[0]))")
    }

    @Test("With all switched off nothing is changed")
    func off() throws {
        let heard = talk(seconds: 1, seed: 10)
        let result = try Self.run(Self.only(), played: talk(seconds: 1, seed: 1), captured: heard)
        #expect(result.sent == Array(heard[..<result.sent.count]))
    }
}
