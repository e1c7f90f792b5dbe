import AudioKit
import Testing
import Core

@testable import Playout

/// Streams of G.711 put into a buffer by hand.
@Suite struct NarrowbandPlayoutTests {
    private static let packets = makePackets()

    private static func makePackets() -> [[UInt8]] {
        var tone = ToneGenerator(frequencyHz: 1_000, levelDBFS: -12)
        var encoder = G711Encoder(.aLaw)
        return (0..<100).map { _ in
            var samples = [Int16](repeating: 0, count: 960)
            var span = samples.mutableSpan
            tone.fill(&span)
            var bytes = [UInt8](repeating: 0, count: 160)
            var room = bytes.mutableSpan
            _ = encoder.encode(samples.span, into: &room)
            return bytes
        }
    }

    private func buffer() -> PlayoutBuffer {
        var configuration = PlayoutConfiguration()
        configuration.initialDelayMilliseconds = 0
        return PlayoutBuffer(configuration: configuration, stream: StreamDecoder(G711Decoder(.aLaw)))
    }

    /// Packet `index`, as if sent every 20 ms with 160 ticks in each.
    private func insert(_ index: Int, into buffer: inout PlayoutBuffer) {
        let packet = Self.packets[index % 100]
        buffer.insert(
            payload: packet.span.bytes, number: Int64(index), timestamp: UInt32(index * 160), marker: false,
            ssrc: 1, arrival: Instant(nanoseconds: Int64(index) * 20_000_000))
    }

    private func pull(_ buffer: inout PlayoutBuffer, _ index: Int) -> (frame: PulledFrame, samples: [Int16]) {
        var samples = [Int16](repeating: 1, count: 960)
        var span = samples.mutableSpan
        let frame = buffer.pull(into: &span, at: Instant(nanoseconds: Int64(index) * 20_000_000 + 5_000_000))
        return (frame, samples)
    }

    private func level(_ samples: [Int16]) -> Double {
        var meter = LevelMeter()
        meter.add(samples.span)
        return meter.rmsDBFS
    }

    @Test("On a clean path each packet is played as it comes, with nothing made up")
    func clean() {
        var buffer = buffer()
        for index in 0..<100 {
            insert(index, into: &buffer)
            let (frame, samples) = pull(&buffer, index)
            #expect(frame == PulledFrame())
            if index > 0 { #expect(abs(level(samples) + 12) < 0.5) }
        }
        #expect(buffer.statistics.packetsLost == 0 && buffer.statistics.resets == 0)
        #expect(buffer.statistics.playoutDelayNanoseconds == 5_000_000)
    }

    @Test("What is lost is made up from the period before, and a long outage falls silent")
    func loss() {
        var buffer = buffer()
        for index in 0..<100 {
            if index != 50, index < 70 { insert(index, into: &buffer) }
            let (frame, samples) = pull(&buffer, index)
            if index == 50 {
                #expect(frame.concealedSamples > 0)
                #expect(level(samples) > -16)
            }
            if index > 75 { #expect(level(samples) < -80) }
        }
        #expect(buffer.statistics.packetsLost == 1)
    }

    @Test("In the sender's silence there is the noise that it described, and no loss")
    func noise() {
        var buffer = buffer()
        for index in 0..<50 {
            insert(index, into: &buffer)
            _ = pull(&buffer, index)
        }
        let payload: [UInt8] = [50]
        buffer.insertNoise(
            payload: payload.span.bytes, number: 50, timestamp: 8_000, ssrc: 1,
            arrival: Instant(nanoseconds: 1_000_000_000))
        for index in 50..<150 {
            let (frame, samples) = pull(&buffer, index)
            #expect(frame.concealedSamples == 0)
            if index > 52 { #expect(abs(level(samples) - (-47)) < 3) }
        }
        for index in 150..<200 {
            let packet = Self.packets[index % 100]
            buffer.insert(
                payload: packet.span.bytes, number: Int64(index - 99), timestamp: UInt32(index * 160),
                marker: true, ssrc: 1, arrival: Instant(nanoseconds: Int64(index) * 20_000_000))
            let (_, samples) = pull(&buffer, index)
            if index > 152 { #expect(abs(level(samples) + 12) < 0.5) }
        }
        #expect(buffer.statistics.packetsLost == 0 && buffer.statistics.samplesConcealed == 0)
    }

    @Test("Payloads that are far too long are counted and dropped")
    func unusable() {
        var buffer = buffer()
        for (index, length) in [1_000, 1_400].enumerated() {
            let bytes = [UInt8](repeating: 0xD5, count: length)
            buffer.insert(
                payload: bytes.span.bytes, number: Int64(index), timestamp: 0, marker: false, ssrc: 1,
                arrival: .zero)
        }
        #expect(buffer.statistics.packetsDiscarded == 2)
    }

    @Test("Empty payloads are counted and passed over", arguments: [true, false])
    func empty(isNoise: Bool) {
        var buffer = buffer()
        for index in 0..<50 {
            insert(index, into: &buffer)
            _ = pull(&buffer, index)
        }
        let none: [UInt8] = []
        if isNoise {
            buffer.insertNoise(payload: none.span.bytes, number: 50, timestamp: 8_000, ssrc: 1, arrival: .zero)
        } else {
            buffer.insert(
                payload: none.span.bytes, number: 50, timestamp: 8_000, marker: false, ssrc: 1, arrival: .zero)
        }
        let statistics = buffer.statistics
        #expect(statistics.packetsReceived == 51)
        #expect(statistics.packetsDiscarded == 0 && statistics.packetsLost == 0)
    }
}
