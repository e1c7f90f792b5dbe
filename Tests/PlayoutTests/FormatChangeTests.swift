import AudioKit
import Testing
import Core

@testable import Playout

@Suite("Streams that change their codec")
struct FormatChangeTests {
    /// One sender of a tone, which changes from Opus to G.711 or back, into one buffer.
    private struct Stream: ~Copyable {
        var buffer: PlayoutBuffer
        var opus: OpusEncoder
        var narrowband = G711Encoder(.muLaw)
        var tone = ToneGenerator(frequencyHz: 400, levelDBFS: -12)
        var number: Int64 = 65_500
        var timestamp: UInt32 = 0xFFFF_F000
        var now = Instant.zero
        /// The level of each 10 ms that was played.
        var levels: [Double] = []

        init() throws {
            let decoder = try OpusDecoder()
            let encoder = try OpusEncoder(settings: EncoderSettings())
            buffer = PlayoutBuffer(configuration: PlayoutConfiguration(), decoder: decoder)
            opus = encoder
        }

        /// The next packet, with its number and timestamp.
        mutating func next(isOpus: Bool) -> (payload: [UInt8], number: Int64, timestamp: UInt32) {
            var samples = [Int16](repeating: 0, count: 960)
            var span = samples.mutableSpan
            tone.fill(&span)
            var bytes = [UInt8](repeating: 0, count: 1_275)
            var room = bytes.mutableSpan
            let count = isOpus ? opus.encode(samples.span, into: &room) : narrowband.encode(samples.span, into: &room)
            defer {
                number += 1
                timestamp &+= isOpus ? 960 : 160
            }
            return (Array(bytes[..<count]), number, timestamp)
        }

        mutating func insert(_ packet: (payload: [UInt8], number: Int64, timestamp: UInt32), format: UInt8) {
            buffer.insert(
                payload: packet.payload.span.bytes, number: packet.number, timestamp: packet.timestamp,
                marker: false, ssrc: 1, format: format, arrival: now)
        }

        mutating func pull() {
            var samples = [Int16](repeating: 0, count: 960)
            var span = samples.mutableSpan
            _ = buffer.pull(into: &span, at: now)
            for half in 0..<2 {
                var meter = LevelMeter()
                meter.add(samples.span.extracting((half * 480)..<(half * 480 + 480)))
                levels.append(meter.rmsDBFS)
            }
            now = now.advanced(by: .milliseconds(20))
        }
    }

    @Test("The tone continues through a change to G.711 and one back: no part of it is quiet")
    func sound() throws {
        var stream = try Stream()
        for _ in 0..<60 {
            stream.insert(stream.next(isOpus: true), format: 0)
            stream.pull()
        }
        var decoder = StreamDecoder(G711Decoder(.muLaw))
        let narrowband = stream.buffer.change(to: &decoder)
        var isEmpty = decoder.isEmpty
        #expect(narrowband == 1 && isEmpty)
        for _ in 0..<60 {
            stream.insert(stream.next(isOpus: false), format: narrowband)
            stream.pull()
        }
        var back = StreamDecoder(try OpusDecoder())
        let wide = stream.buffer.change(to: &back)
        isEmpty = back.isEmpty
        #expect(wide == 2 && !isEmpty, "the first decoder of Opus is given back")
        for _ in 0..<60 {
            stream.insert(stream.next(isOpus: true), format: wide)
            stream.pull()
        }
        let steady = stream.levels.dropFirst(20)
        let quietest = steady.min() ?? -100
        #expect(quietest > -20, "\(quietest) dBFS; the tone has -12")
        #expect(stream.buffer.statistics.resets == 0 && stream.buffer.statistics.packetsLost == 0)
    }

    @Test("A packet of the format before that comes behind one of the new still has its place")
    func reordered() throws {
        var stream = try Stream()
        for _ in 0..<60 {
            stream.insert(stream.next(isOpus: true), format: 0)
            stream.pull()
        }
        let late = stream.next(isOpus: true)
        var decoder = StreamDecoder(G711Decoder(.muLaw))
        let format = stream.buffer.change(to: &decoder)
        stream.insert(stream.next(isOpus: false), format: format)
        stream.insert(late, format: 0)
        let before = stream.buffer.statistics
        for _ in 0..<30 {
            stream.pull()
            stream.insert(stream.next(isOpus: false), format: format)
        }
        let after = stream.buffer.statistics
        #expect(after.packetsLost == before.packetsLost && after.packetsLate == before.packetsLate)
        #expect(after.packetsDiscarded == 0 && after.resets == 0)
        #expect((stream.levels.dropFirst(20).min() ?? -100) > -20)
    }

    @Test("Between two changes in quick succession nothing is decoded with the wrong codec")
    func skipped() throws {
        var stream = try Stream()
        for _ in 0..<60 {
            stream.insert(stream.next(isOpus: true), format: 0)
            stream.pull()
        }
        var first = StreamDecoder(G711Decoder(.aLaw))
        let between = stream.buffer.change(to: &first)
        stream.insert(stream.next(isOpus: false), format: between)
        var second = StreamDecoder(G711Decoder(.muLaw))
        let last = stream.buffer.change(to: &second)
        let isEmpty = second.isEmpty
        #expect(!isEmpty, "the one that was never used is given back")
        for _ in 0..<20 {
            stream.insert(stream.next(isOpus: false), format: last)
            stream.pull()
        }
        let loudest = stream.levels.dropFirst(20).max() ?? 0
        #expect(loudest < -5, "no noise at full scale: \(loudest)")
        #expect(stream.buffer.statistics.resets == 0)
    }

    @Test("After a pause the new format begins where the clock is, not where the numbers are")
    func afterPause() throws {
        var stream = try Stream()
        for _ in 0..<60 {
            stream.insert(stream.next(isOpus: true), format: 0)
            stream.pull()
        }
        var decoder = StreamDecoder(G711Decoder(.muLaw))
        let format = stream.buffer.change(to: &decoder)
        for _ in 0..<100 { stream.pull() }
        for _ in 0..<60 {
            stream.insert(stream.next(isOpus: false), format: format)
            stream.pull()
        }
        #expect(stream.buffer.statistics.packetsLate == 0 && stream.buffer.statistics.packetsDiscarded == 0)
        #expect((stream.levels.suffix(80).min() ?? -100) > -20)
        #expect(stream.buffer.statistics.playoutDelayNanoseconds < 100_000_000)
    }
}
