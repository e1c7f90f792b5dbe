import AudioKit
import CAllocationCounter
import OpusCodec
import Playout
import Testing
import Timekeeping

@testable import MediaEngine

/// G.711 in virtual time: unoptimised, its filters are too slow for twenty calls at once.
@Suite("Allocations of G.711", .serialized)
struct NarrowbandAllocationTests {
    @Test("Finding silence and describing it allocates nothing")
    func silence() throws {
        var settings = EncoderSettings()
        settings.dtx = true
        var encoder = try SoundEncoder(.pcmu, settings, describesNoise: true)
        let samples = [Int16](repeating: 3, count: 960)
        var bytes = [UInt8](repeating: 0, count: 160)
        var (before, described) = (Int64(0), 0)
        for index in 0..<400 {
            if index == 200 { before = handset_test_allocations() }
            var room = bytes.mutableSpan
            _ = encoder.encode(samples.span, into: &room)
            if encoder.isNoise { described += 1 }
        }
        let allocations = handset_test_allocations() - before
        #expect(allocations == 0 && described > 10)
    }

    @Test("Encoding, playing, making up and comfort noise allocate nothing")
    func steadyState() throws {
        var encoder = try SoundEncoder(.pcma, EncoderSettings())
        var buffer = PlayoutBuffer(
            configuration: PlayoutConfiguration(), stream: StreamDecoder(G711Decoder(.aLaw)))
        var samples = [Int16](repeating: 1_000, count: 960)
        var bytes = [UInt8](repeating: 0, count: 160)
        let noise: [UInt8] = [50, 127, 120]
        var encoded = 0
        var before: Int64 = 0
        for index in 0..<400 {
            // The first half of it is a warm-up: unoptimised code makes descriptions of its types when it first meets them.
            if index == 200 { before = handset_test_allocations() }
            let now = Instant(nanoseconds: Int64(index) * 20_000_000)
            var room = bytes.mutableSpan
            encoded += encoder.encode(samples.span, into: &room)
            if index % 200 == 100 {
                buffer.insertNoise(
                    payload: noise.span.bytes, sequenceNumber: UInt16(truncatingIfNeeded: index),
                    timestamp: UInt32(truncatingIfNeeded: index * 160), ssrc: 1, arrival: now)
            } else if index % 10 != 0, index % 200 < 100 || index % 200 >= 120 {
                buffer.insert(
                    payload: bytes.span.bytes, sequenceNumber: UInt16(truncatingIfNeeded: index),
                    timestamp: UInt32(truncatingIfNeeded: index * 160), marker: false, ssrc: 1, arrival: now)
            }
            var frame = samples.mutableSpan
            _ = buffer.pull(into: &frame, at: now)
        }
        let allocations = handset_test_allocations() - before
        #expect(allocations == 0)
        #expect(encoded == 400 * 160 && buffer.statistics.samplesConcealed > 0)
    }
}
