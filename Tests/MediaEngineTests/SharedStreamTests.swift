import AudioKit
import AudioPort
import Core
import Glibc
import Realtime
import Testing

@testable import CallMedia
@testable import MediaEngine

/// A call that hears a mix whose frames are encoded once for several calls, and a peer that hears what the call sends.
@Suite("Frames of a mix that a call sends as they are")
struct SharedStreamTests {
    /// What a mixer does for one call: a tone, and its frames.
    private struct Mix: ~Copyable {
        private var port: MixPort
        private var encoder: OpusEncoder
        private let settings: EncoderSettings
        private let (toneHz, encodedHz): (Double, Double)
        private let sweeps: Bool
        private var work = SampleBuffer(capacity: MixPort.frameSamples)
        private var time = 0.0

        /// - Parameter encodedHz: The frames have another tone than the samples, so that the peer hears which of them were sent.
        init(_ port: consuming MixPort, _ settings: EncoderSettings, toneHz: Double, encodedHz: Double, sweeps: Bool)
            throws
        {
            self.port = port
            self.sweeps = sweeps
            self.settings = settings
            (self.toneHz, self.encodedHz) = (toneHz, encodedHz)
            encoder = try OpusEncoder(settings: settings)
        }

        var sharing: FrameSharing { port.sharing }

        /// - Parameter isIndependent: Nil: the frame is not shared.
        mutating func give(isIndependent: Bool?) {
            var taken = [Int16](repeating: 0, count: MixPort.frameSamples)
            var room = taken.mutableSpan
            _ = port.take(into: &room)
            let (samples, encoded) = (tone(toneHz), tone(encodedHz))
            time += 0.02
            encoder.set(isIndependent: isIndependent == true)
            var bytes = InlineArray<256, UInt8>(repeating: 0)
            var packet = bytes.mutableSpan
            let count = encoder.encode(encoded.span, into: &packet)
            let frame = SharedFrame(bytes, count: count, settings: settings, isIndependent: isIndependent == true)
            port.give(samples.span, through: &work, encoded: isIndependent == nil ? nil : frame)
        }

        /// A tone of a frequency, or one that rises within 0.15 s by an octave, again and again.
        private func tone(_ hertz: Double) -> [Int16] {
            (0..<MixPort.frameSamples).map {
                guard !sweeps else { return sweep(time + Double($0) / 48_000) }
                let turns = hertz * (time + Double($0) / 48_000)
                return Int16(8_000 * sin(2 * Double.pi * turns.truncatingRemainder(dividingBy: 1)))
            }
        }

        private func sweep(_ time: Double) -> Int16 {
            let place = (time / 0.15).truncatingRemainder(dividingBy: 1)
            let turns = 300 * 0.15 * (place + place * place / 2)
            return Int16(8_000 * sin(2 * Double.pi * turns.truncatingRemainder(dividingBy: 1)))
        }
    }

    private struct Stage: ~Copyable {
        var mix: Mix
        var call: VirtualCall
        private var heard: AudioRing.Consumer

        private init(_ mix: consuming Mix, _ call: consuming VirtualCall, _ heard: consuming AudioRing.Consumer) {
            self.mix = mix
            self.call = call
            self.heard = heard
        }

        static func make(encodedHz: Double = 440, sweeps: Bool = false, bitrateBps: Int = 32_000) throws -> Stage {
            var settings = EncoderSettings()
            settings.bitrateBps = bitrateBps
            let pair = MixPort.pair()
            let mix = try Mix(pair.port, settings, toneHz: 440, encodedHz: encodedHz, sweeps: sweeps)
            var left = CallRings()
            left.line = .some(pair.line)
            var right = CallRings()
            let kept = AudioRing(capacity: 1 << 20)
            right.recorder = .some(kept.producer)
            let call = try VirtualCall(audio: AudioBehaviour(source: .program), leftRings: left, rightRings: right) {
                $0.encoder = settings
            }
            return Stage(mix, call, kept.consumer)
        }

        mutating func run(frames: Int, isIndependent: Bool?) throws {
            for _ in 0..<frames {
                mix.give(isIndependent: isIndependent)
                try call.run(seconds: 0.02)
            }
        }

        /// What the peer has heard since this was last asked.
        mutating func takeHeard() -> [Int16] {
            var samples = [Int16](repeating: 0, count: heard.count)
            var room = samples.mutableSpan
            _ = heard.read(into: &room)
            return samples
        }

        /// The amplitudes of both tones in the last 0.2 s that the peer has heard.
        mutating func amplitudes(_ other: Double) -> (own: Double, shared: Double) {
            let samples = takeHeard().suffix(9_600)
            func amplitude(_ hertz: Double) -> Double {
                var (cosine, sine) = (0.0, 0.0)
                for (index, sample) in samples.enumerated() {
                    let angle = (2 * Double.pi * hertz * Double(index) / 48_000).truncatingRemainder(
                        dividingBy: 2 * Double.pi)
                    cosine += Double(sample) * cos(angle)
                    sine += Double(sample) * sin(angle)
                }
                return 2 * (cosine * cosine + sine * sine).squareRoot() / Double(max(samples.count, 1))
            }
            return (amplitude(440), amplitude(other))
        }
    }

    @Test("A call sends the frames of a mix from an independent one on, and its own where there is none")
    func sends() throws {
        var stage = try Stage.make(encodedHz: 1_000)
        try stage.run(frames: 50, isIndependent: false)
        var heard = stage.amplitudes(1_000)
        #expect(heard.own > 6_000 && heard.shared < 200)
        #expect(stage.mix.sharing.settings != nil)
        try stage.run(frames: 1, isIndependent: true)
        try stage.run(frames: 50, isIndependent: false)
        heard = stage.amplitudes(1_000)
        #expect(heard.own < 200 && heard.shared > 6_000)
        #expect(stage.mix.sharing == .follows(try #require(stage.mix.sharing.settings)))
        try stage.run(frames: 50, isIndependent: nil)
        heard = stage.amplitudes(1_000)
        #expect(heard.own > 6_000 && heard.shared < 200)
        // Without an independent frame it does not come back.
        try stage.run(frames: 50, isIndependent: false)
        heard = stage.amplitudes(1_000)
        #expect(heard.own > 6_000 && heard.shared < 200)
    }

    @Test("A call that is to send fewer bits, or to expect loss, encodes for itself")
    func adapts() throws {
        var stage = try Stage.make(encodedHz: 1_000)
        try stage.run(frames: 50, isIndependent: true)
        #expect(stage.amplitudes(1_000).shared > 6_000)
        stage.call.loss = 0.2
        try stage.run(frames: 1_000, isIndependent: true)
        stage.call.loss = 0
        try stage.run(frames: 20, isIndependent: true)
        #expect(stage.amplitudes(1_000).own > 6_000)
    }

    @Test(
        "Where the stream changes the peer hears what it would hear without",
        arguments: [(32_000, 0.43), (64_000, 0.25)])
    func changes(bitrateBps: Int, most: Double) throws {
        func decoded(_ shared: (Int) -> Bool?) throws -> [Int16] {
            var stage = try Stage.make(sweeps: true, bitrateBps: bitrateBps)
            let sent = Payloads()
            stage.call.path = { $0.sentAt.advanced(by: .milliseconds(5)) }
            stage.call.rewrite = { datagram, isFromLeft, isControl in
                if isFromLeft, !isControl { sent.list.append(Array(datagram[12...])) }
                return datagram
            }
            for frame in 0..<500 { try stage.run(frames: 1, isIndependent: frame < 100 ? nil : shared(frame)) }
            return try sent.decoded()
        }
        let own = try decoded { _ in nil }
        let changing = try decoded { frame in frame % 20 < 10 ? frame % 20 == 0 : nil }
        // An encoder that begins again without the frame before, or with a frame that refers to it, differs by 0.47 to 2.4.
        let worst = Self.difference(own, changing)
        #expect(worst < most, "\(worst)")
    }

    /// How far two recordings of the same sound differ, at most within 5 ms: the RMS of the difference as a share of the sound's.
    private static func difference(_ one: [Int16], _ other: [Int16]) -> Double {
        var worst = 0.0
        for start in stride(from: 0, to: min(one.count, other.count) - 240, by: 240) {
            var (sum, power) = (0.0, 0.0)
            for index in start..<start + 240 {
                let (sample, difference) = (Double(one[index]), Double(one[index]) - Double(other[index]))
                sum += difference * difference
                power += sample * sample
            }
            worst = max(worst, (sum / max(power, 240 * 1_000_000)).squareRoot())
        }
        return worst
    }

    private final class Payloads {
        var list: [[UInt8]] = []

        func decoded() throws -> [Int16] {
            var decoder = try OpusDecoder()
            var (all, frame): ([Int16], [Int16]) = ([], [Int16](repeating: 0, count: 960))
            for payload in list {
                var room = frame.mutableSpan
                #expect(decoder.decode(payload.span.bytes, into: &room) == 960)
                all += frame
            }
            return all
        }
    }
}
