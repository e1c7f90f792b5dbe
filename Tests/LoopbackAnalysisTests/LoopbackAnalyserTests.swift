import Foundation
import LoopbackAnalysis
import OpusCodec
import Testing

@Suite("A whole measurement")
struct LoopbackAnalyserTests {
    static let signal = LoopbackSignal(carrierSeconds: 1.5)

    static func measure(_ channel: SyntheticChannel) -> LoopbackMeasurement {
        let captured = channel.capture(signal.samples(0..<signal.count), count: signal.count + Int(channel.delay))
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
        #expect(try abs(#require(measured.timing.meanDelay) / 48 - 41.8) < 0.4)
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

    @Test("Silence tells nothing and breaks nothing")
    func silence() {
        let measured = LoopbackAnalyser(Self.signal, maximumDelay: 4_800).analyse([Int16](repeating: 0, count: 100_000))
        #expect(!measured.timing.isFound && measured.response == nil && measured.tone == nil)
        #expect(LoopbackAnalyser(Self.signal).analyse([]).noise == nil)
    }

    @Test("Through Opus the delay is found to 0.1 ms, and a lost and a skipped frame to 3 ms")
    func opus() throws {
        var settings = EncoderSettings()
        settings.bitrateBps = 32_000
        var encoder = try OpusEncoder(settings: settings)
        var decoder = try OpusDecoder()
        let signal = LoopbackSignal(carrierSeconds: 2.5)
        let played = signal.samples(0..<180_000)
        var captured = [Int16](repeating: 0, count: 1_440)
        for frame in 0..<180 {
            var packet = [UInt8](repeating: 0, count: 1_500)
            var room = packet.mutableSpan
            let length = encoder.encode(played.span.extracting(frame * 960..<frame * 960 + 960), into: &room)
            var pcm = [Int16](repeating: 0, count: 960)
            var span = pcm.mutableSpan
            if frame == 100 {
                _ = decoder.conceal(samples: 960, into: &span)
            } else {
                _ = decoder.decode(packet.span.bytes.extracting(0..<length), into: &span)
            }
            if frame != 130 { captured += pcm }
        }
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
}
