import Foundation
import LoopbackAnalysis
import AudioKit
import TestSupport
import Testing

@Suite("A whole measurement")
struct LoopbackAnalyserTests {
    static let signal = LoopbackSignal(carrierSeconds: 1.5)
    private static let played = signal.samples(0..<signal.count)
    private static let twoRounds = LoopbackSignal(carrierSeconds: 1.5, rounds: 2)
    private static let playedTwice = twoRounds.samples(0..<twoRounds.count)

    static func measure(_ channel: SyntheticChannel) -> LoopbackMeasurement {
        let captured = channel.capture(played, count: signal.count + Int(channel.delay))
        return LoopbackAnalyser(signal, maximumDelay: 24_000).analyse(captured)
    }

    @Test("A cable measures as a cable: flat, quiet, straight")
    func cable() throws {
        let measured = Self.measure(SyntheticChannel(delay: 2_000.3, driftPPM: 300, gain: 0.5))
        let response = try #require(measured.response)
        for point in response.points where (30...18_000).contains(point.frequencyHz) {
            #expect(abs(point.gainDB - -6.02) < 0.1, "\(point)")
        }
        #expect(response.bandHz.lowerBound < 30 && response.bandHz.upperBound > 18_000)
        #expect(response.speechRippleDB < 0.1)
        let tone = try #require(measured.tone)
        // Two roundings to 16 bits are 0.02 % of a tone of −18 dBFS.
        #expect(tone.thdPlusNoisePercent < 0.04 && tone.thdPercent < 0.01, "\(tone)")
        #expect(abs(tone.levelDBFS - -18.02) < 0.02)
        #expect(abs(tone.frequencyHz - 997 / 1.0003) < 0.005)
        #expect(try abs(#require(measured.timing.driftPPM).value - 300) < 0.5)
        #expect(try abs(#require(measured.timing.firstDelay) / 48 - 41.8) < 0.4)
        #expect(measured.timing.eventCount == 0)
        #expect(try abs(#require(measured.delayChangeAtEnd)) < 0.2)
        #expect(try #require(measured.noise).levelDBFS < -95)
        #expect(measured.clipping.runs == 0 && !measured.timing.isInverted)
        #expect(try abs(#require(measured.timing.gainDB) - -6.02) < 0.2)
    }

    @Test("Distortion, noise and a filter are measured as they are")
    func impaired() throws {
        var channel = SyntheticChannel(delay: 777, noise: 32.767, cubic: 0.5)
        // A low-pass of the first order at 2 kHz.
        let pole = exp(-2 * Double.pi * 2_000 / 48_000)
        channel.taps = (0..<60).map { (1 - pole) * pow(pole, Double($0)) }
        let measured = Self.measure(channel)
        // RMS 32.767 of 32 767 is −60 dB, and 3 dB more against a sine.
        let noise = try #require(measured.noise)
        #expect(abs(noise.levelDBFS - -56.99) < 0.3)
        #expect(abs(noise.weightedDBFS - -59.2) < 1.5)
        let response = try #require(measured.response)
        func exact(_ frequency: Double) -> Double {
            let angle = 2 * Double.pi * frequency / 48_000
            return 10 * log10((1 - pole) * (1 - pole) / (1 + pole * pole - 2 * pole * cos(angle)))
        }
        for point in response.points where (100...15_000).contains(point.frequencyHz) {
            #expect(abs(point.gainDB - exact(point.frequencyHz)) < 0.6, "\(point) \(exact(point.frequencyHz))")
        }
        // The third power of a sine has a quarter of its third harmonic.
        let tone = try #require(measured.tone)
        let amplitude = pow(10, (-12 + exact(997)) / 20)
        let third = 0.5 * amplitude * amplitude / 4 * 100
        #expect(abs(tone.thdPercent / third - 1) < 0.06, "\(tone.thdPercent) for \(third)")
        #expect(tone.thdPlusNoisePercent > tone.thdPercent)
        let atThousand = try #require(response.points.min { abs($0.frequencyHz - 997) < abs($1.frequencyHz - 997) })
        let distortion = try #require(atThousand.distortionPercent)
        #expect(abs(distortion / third - 1) < 0.3, "\(distortion) for \(third)")
    }

    @Test("What is too loud is counted as clipped")
    func clipped() {
        let measured = Self.measure(SyntheticChannel(delay: 100, gain: 5))
        #expect(measured.clipping.runs > 100)
    }

    @Test("Silence shows nothing and breaks nothing")
    func silence() {
        let measured = LoopbackAnalyser(Self.signal, maximumDelay: 4_800).analyse([Int16](repeating: 0, count: 100_000))
        #expect(!measured.timing.isFound && measured.response == nil && measured.tone == nil)
        #expect(LoopbackAnalyser(Self.signal).analyse([]).noise == nil)
    }

    /// What Opus makes of the signal, frame by frame; `lose` says which packet is concealed, `leaveOut` which is left out.
    private static func throughOpus(
        _ played: [Int16], bitrateBps: Int, lose: Int? = nil, leaveOut: Int? = nil
    ) throws -> [Int16] {
        var settings = EncoderSettings()
        settings.bitrateBps = bitrateBps
        var encoder = try OpusEncoder(settings: settings)
        var decoder = try OpusDecoder()
        var captured = [Int16](repeating: 0, count: 1_440)
        for frame in 0..<played.count / 960 {
            var packet = [UInt8](repeating: 0, count: 1_500)
            var room = packet.mutableSpan
            let length = encoder.encode(played.span.extracting(frame * 960..<frame * 960 + 960), into: &room)
            var pcm = [Int16](repeating: 0, count: 960)
            var span = pcm.mutableSpan
            if frame == lose {
                _ = decoder.conceal(samples: 960, into: &span)
            } else {
                _ = decoder.decode(packet.span.bytes.extracting(0..<length), into: &span)
            }
            if frame != leaveOut { captured += pcm }
        }
        return captured
    }

    @Test("A codec's noise is not taken for gaps: Opus at a call's bitrate loses nothing for ten seconds, twice over")
    func codecNoise() throws {
        let signal = LoopbackSignal(carrierSeconds: 10)
        let once = try Self.throughOpus(signal.samples(0..<520_000), bitrateBps: 32_000)
        // An echo is coded twice.
        let captured = try Self.throughOpus(once, bitrateBps: 32_000)
        let timing = LoopbackAnalyser(signal, maximumDelay: 12_000).analyse(captured).timing
        #expect(timing.isFound && timing.heardSamples > 470_000, "\(timing.heardSamples)")
        #expect(timing.eventCount == 0, "\(timing.events)")
    }

    @Test("Through Opus the delay is found to 0.1 ms, and a lost and a skipped frame to 3 ms")
    func opus() throws {
        let signal = LoopbackSignal(carrierSeconds: 2.5)
        let captured = try Self.throughOpus(
            signal.samples(0..<172_800), bitrateBps: 32_000, lose: 100, leaveOut: 130)
        let measured = LoopbackAnalyser(signal, maximumDelay: 12_000).analyse(captured)
        // libopus looks 6.5 ms ahead.
        #expect(try abs(#require(measured.timing.firstDelay) - (1_440 + 312)) < 4.8)
        #expect(try abs(#require(measured.timing.lastDelay) - (1_440 + 312 - 960)) < 4.8)
        let events = measured.timing.events
        #expect(events.count == 2, "\(events)")
        let lost = try #require(events.first)
        #expect(abs(lost.position - (1_440 + 96_000)) < 480 && abs(lost.holeSamples - 960) < 480, "\(lost)")
        let skipped = try #require(events.last)
        #expect(abs(skipped.position - (1_440 + 124_800)) < 144 && abs(skipped.missingSamples - 960) <= 5, "\(skipped)")
    }

    /// Played with rounds of sweep and tones, through a way that does `faults`.
    private static func rounds(
        _ rounds: Int, _ faults: [SyntheticChannel.Fault], steadiness: Double = 1
    ) -> LoopbackMeasurement {
        let (signal, played) = rounds == 1 ? (signal, played) : (twoRounds, playedTwice)
        let channel = SyntheticChannel(delay: 5_000, faults: faults)
        let captured = channel.capture(played, count: played.count + 5_000)
        return LoopbackAnalyser(signal, maximumDelay: 24_000, steadiness: steadiness).analyse(captured)
    }

    /// A captured sample in the middle of the nth section of a kind.
    private static func middle(_ kind: LoopbackSignal.Kind, _ number: Int = 0) throws -> Int {
        let sections = twoRounds.sections.filter { $0.kind == kind }.map(\.range)
        let range = try #require(sections.dropFirst(number).first)
        return (range.lowerBound + range.upperBound) / 2 + 5_000
    }

    @Test("A delay that shrinks during the sweep is reported, and what the sweep says is withheld; the tones are whole")
    func shrinkingDelay() throws {
        let measured = Self.rounds(1, [.init(position: try Self.middle(.sweep), missing: 2_784)])
        #expect(measured.response == nil)
        let withheld = try #require(measured.withheld.first)
        #expect(measured.withheld.count == 1 && withheld.figure == .response)
        guard case .delayChanged(let samples) = withheld.reason else {
            Issue.record("\(withheld)")
            return
        }
        #expect(abs(samples + 2_784) < 0.5)
        let change = try #require(measured.unseenChanges.first)
        #expect(measured.unseenChanges.count == 1 && abs(change.samples + 2_784) < 0.5)
        #expect(change.positions.contains(try Self.middle(.sweep)))
        let range = try #require(measured.timing.delayRange)
        #expect(abs(range.upperBound - range.lowerBound - 2_784) < 0.5)
        #expect(measured.tones.count == LoopbackSignal.usualTonesHz.count)
        #expect(measured.tones.allSatisfy { $0.thdPlusNoisePercent < 0.1 }, "\(measured.tones)")
    }

    @Test("A carrier whose end comes late, because the delay moved, is no echo", arguments: [3_000, 5_000, 9_000])
    func lateEnd(samples: Int) throws {
        let carrier = try #require(Self.signal.sections.first { $0.kind == .carrier }).range
        let measured = Self.rounds(1, [.init(position: carrier.upperBound + 5_000 - 6_000, hole: samples)])
        #expect(measured.evidence.echo == nil, "\(measured.evidence)")
    }

    @Test("What a change of the delay spoiled in the first round is measured again in the second")
    func secondRound() throws {
        let measured = Self.rounds(
            2,
            [
                .init(position: try Self.middle(.sweep), missing: 2_784),
                .init(position: try Self.middle(.tone(frequencyHz: 313)), missing: -960),
            ])
        #expect(measured.withheld.isEmpty, "\(measured.withheld)")
        #expect(measured.unseenChanges.count == 2)
        let response = try #require(measured.response)
        #expect(response.bandHz.lowerBound < 30 && response.bandHz.upperBound > 18_000 && response.speechRippleDB < 0.1)
        #expect(measured.tones.count == LoopbackSignal.usualTonesHz.count)
        #expect(measured.tones.allSatisfy { $0.thdPlusNoisePercent < 0.1 }, "\(measured.tones)")
    }

    @Test("A gap in a tone is no distortion: the tone is withheld, and the others are reported")
    func gapInTone() throws {
        let place = try Self.middle(.tone(frequencyHz: 997))
        let measured = Self.rounds(1, [.init(position: place, hole: 480, missing: 480)])
        #expect(measured.withheld == [Withheld(.tone(frequencyHz: 997), .glitch)])
        #expect(measured.tones.map(\.playedHz) == [97, 313, 3_163, 9_973] && measured.response != nil)
    }

    @Test("A gap in the sweep withholds the response, and so does another sound if a second sweep shows it")
    func gapInSweep() throws {
        let place = try Self.middle(.sweep)
        let silent = Self.rounds(1, [.init(position: place, hole: 100, missing: 100)])
        #expect(silent.withheld == [Withheld(.response, .gap)] && silent.response == nil)
        let noisy = Self.rounds(2, [.init(position: place, hole: 4_800, missing: 4_800, noise: 2_000)])
        #expect(noisy.response == nil && noisy.withheld.map(\.figure) == [.response], "\(noisy.withheld)")
        guard case .repeatsDiffer? = noisy.withheld.first?.reason else {
            Issue.record("\(noisy.withheld)")
            return
        }
    }

    @Test("The noise is that of the silence wherever the delay goes later", arguments: [-2_000, 2_000])
    func movedDelay(missing: Int) throws {
        let first = Self.signal.sections[1].range.lowerBound
        let measured = SyntheticChannel(
            delay: 5_000, noise: 20, faults: [.init(position: first + 5_000 + 30_000, missing: missing)]
        ).capture(Self.played, count: Self.played.count + 8_000)
        let noise = try #require(LoopbackAnalyser(Self.signal, maximumDelay: 24_000).analyse(measured).noise)
        #expect(abs(noise.levelDBFS - -61.3) < 0.5, "\(noise.levelDBFS)")
    }

    @Test("Figures that are withheld come from a later measurement, and the others stay")
    func filled() throws {
        let place = try Self.middle(.tone(frequencyHz: 997))
        var measured = Self.rounds(1, [.init(position: place, hole: 480, missing: 480)])
        measured.withheld.append(Withheld(.response, .gap))
        measured.response = nil
        var later = Self.rounds(1, [])
        later.tones.removeAll { $0.playedHz != 997 }
        measured.fill(from: later)
        #expect(measured.withheld.isEmpty && measured.response == later.response)
        #expect(measured.tones.count == LoopbackSignal.usualTonesHz.count && measured.tone == later.tone)
        measured.withheld = [Withheld(.response, .gap)]
        later.withheld = [Withheld(.response, .glitch)]
        measured.fill(from: later)
        #expect(measured.withheld == [Withheld(.response, .gap)])
    }

    @Test("An interruption that the card reported withholds what was played then, however it sounds")
    func interruption() throws {
        let captured = SyntheticChannel(delay: 5_000).capture(Self.played, count: Self.played.count + 5_000)
        let analyser = LoopbackAnalyser(Self.signal, maximumDelay: 24_000)
        let place = try Self.middle(.sweep)
        let measured = analyser.analyse(captured, interruptions: [place..<place + 9_600])
        #expect(measured.withheld == [Withheld(.response, .interrupted(times: 1))])
        let early = analyser.analyse(captured, interruptions: [9_600..<19_200])
        #expect(early.withheld == [Withheld(.noise, .interrupted(times: 1))] && early.noise == nil)
        #expect(early.signalToNoiseDB == nil && early.response != nil)
        #expect(measured.tones.count == LoopbackSignal.usualTonesHz.count)
    }

    @Test("Each tone is measured: a whistle that hides beneath one of them shows in the others")
    func tones() throws {
        var captured = SyntheticChannel(delay: 500).capture(Self.played, count: Self.played.count + 500)
        // A whistle of 1 kHz, as USB frames make, of 2 % of each tone.
        for index in captured.indices {
            captured[index] = Int16(
                max(-32_767, min(32_767, Double(captured[index]) + 164 * sin(2 * .pi * Double(index) / 48))))
        }
        let measured = LoopbackAnalyser(Self.signal, maximumDelay: 24_000).analyse(captured)
        #expect(measured.tones.map(\.playedHz).sorted() == [97, 313, 997, 3_163, 9_973])
        for tone in measured.tones where tone.playedHz != 997 {
            #expect(abs(tone.thdPlusNoisePercent - 2) < 0.2, "\(tone)")
        }
    }

    @Test("Tones of other frequencies are measured in their order, those at both ends of the range too")
    func otherTones() throws {
        let signal = LoopbackSignal(carrierSeconds: 1, tonesHz: [440.5, 20, 20_000])
        let captured = SyntheticChannel(delay: 500).capture(
            signal.samples(0..<signal.count), count: signal.count + 500)
        let measured = LoopbackAnalyser(signal, maximumDelay: 24_000).analyse(captured)
        #expect(measured.tones.map(\.playedHz) == [440.5, 20, 20_000] && measured.tone == nil)
        for tone in measured.tones {
            #expect(abs(tone.frequencyHz / tone.playedHz - 1) < 1e-5 && tone.thdPlusNoisePercent < 0.1, "\(tone)")
            #expect(abs(tone.levelDBFS - LoopbackSignal.steadyLevelDBFS) < 0.02, "\(tone)")
        }
    }
}
