import AudioKit
import TestSupport
import Testing
import Core

@testable import Playout

/// Packets put into a buffer by hand.
@Suite struct PlayoutBufferTests {
    private static let voice: [[UInt8]] = (try? SimulatedCall().packets()) ?? []

    private func buffer(_ change: (inout PlayoutConfiguration) -> Void = { $0.initialDelayMilliseconds = 0 }) throws
        -> PlayoutBuffer
    {
        var configuration = PlayoutConfiguration()
        change(&configuration)
        return PlayoutBuffer(configuration: configuration, decoder: try OpusDecoder())
    }

    /// Packet `index` of the voice, as if sent every 20 ms, arriving at `milliseconds`.
    private func insert(
        _ index: Int, at milliseconds: Int, into buffer: inout PlayoutBuffer, sequence: UInt16? = nil,
        timestamp: UInt32? = nil, ssrc: UInt32 = 1, payload: [UInt8]? = nil
    ) {
        let packet = payload ?? Self.voice[index]
        buffer.insert(
            payload: packet.span.bytes, number: Int64(sequence ?? UInt16(index)),
            timestamp: timestamp ?? UInt32(index * 960), marker: false, ssrc: ssrc,
            arrival: Instant(nanoseconds: Int64(milliseconds) * 1_000_000))
    }

    private func pull(_ buffer: inout PlayoutBuffer, at milliseconds: Int) -> (frame: PulledFrame, samples: [Int16]) {
        var samples = [Int16](repeating: 1, count: 960)
        var span = samples.mutableSpan
        let frame = buffer.pull(into: &span, at: Instant(nanoseconds: Int64(milliseconds) * 1_000_000))
        return (frame, samples)
    }

    /// What a decoder gives for the voice, undisturbed.
    private func clean(_ count: Int) throws -> [[Int16]] {
        var decoder = try OpusDecoder()
        return Self.voice.prefix(count).map { packet in
            var samples = [Int16](repeating: 0, count: 960)
            var span = samples.mutableSpan
            _ = decoder.decode(packet.span.bytes, into: &span)
            return samples
        }
    }

    @Test("Before the first packet a pull gives silence")
    func silence() throws {
        var buffer = try buffer()
        let (frame, samples) = pull(&buffer, at: 0)
        #expect(frame.silentSamples == 960)
        #expect(samples.allSatisfy { $0 == 0 })
    }

    @Test("On a clean path the output is the decoder's, sample for sample")
    func transparent() throws {
        var buffer = try buffer()
        let clean = try clean(100)
        for index in 0..<100 {
            insert(index, at: index * 20, into: &buffer)
            let isClean = pull(&buffer, at: index * 20 + 5).samples == clean[index]
            #expect(isClean)
        }
    }

    @Test("Packets of padding alone are neither lost nor a pause: the sound continues, sample for sample")
    func padding() throws {
        var buffer = try buffer()
        let clean = try clean(100)
        var sequence: UInt16 = 0
        for index in 0..<100 {
            insert(index, at: index * 20, into: &buffer, sequence: sequence)
            sequence += 1
            for _ in 0..<(index % 10 == 5 ? 3 : 0) {
                insert(index, at: index * 20 + 1, into: &buffer, sequence: sequence, payload: [])
                sequence += 1
            }
            let isClean = pull(&buffer, at: index * 20 + 5).samples == clean[index]
            let mayAwait = buffer.mayAwait(forPull: 960)
            #expect(isClean && mayAwait, "the sender is not taken to be silent")
        }
        let statistics = buffer.statistics
        #expect(statistics.packetsLost == 0 && statistics.packetsDiscarded == 0)
        #expect(statistics.packetsReceived == 130)
    }

    @Test("What is missing may only be late, behind padding too, but not before a gap or where the sender is silent")
    func awaited() throws {
        func buffer(with last: (inout PlayoutBuffer) -> Void) throws -> Bool {
            var buffer = try self.buffer()
            for index in 0..<10 {
                insert(index, at: index * 20, into: &buffer)
                _ = pull(&buffer, at: index * 20 + 5)
            }
            last(&buffer)
            return buffer.mayAwait(forPull: 960)
        }
        #expect(try buffer { _ in })
        #expect(try buffer { insert(9, at: 200, into: &$0, sequence: 10, payload: []) })
        #expect(try !buffer { insert(10, at: 200, into: &$0) }, "nothing is missing")
        #expect(try !buffer { insert(11, at: 200, into: &$0) }, "one is lost")
        #expect(try !buffer { $0.passOver(number: 10, ssrc: 1) }, "a telephone event")
    }

    @Test("After a packet came late the decoder is as if it had come in time")
    func lateIsTakenBack() throws {
        var buffer = try buffer {
            $0.initialDelayMilliseconds = 0
            $0.millisecondsPerLatePercent = 1  // No delay is worth this packet.
        }
        let clean = try clean(100)
        for index in 0..<100 {
            if index != 60 { insert(index, at: index * 20, into: &buffer) }
            if index == 61 { insert(60, at: 61 * 20 + 2, into: &buffer) }
            let (frame, samples) = pull(&buffer, at: index * 20 + 5)
            #expect((frame.concealedSamples > 0) == (index == 60))
            if index == 61 {
                let isClean = samples.suffix(700) == clean[61].suffix(700)
                #expect(isClean)
            } else if index != 60 {
                let isClean = samples == clean[index]
                #expect(isClean)
            }
        }
        #expect(buffer.statistics.packetsLost == 0)
        #expect(buffer.statistics.packetsLate == 1)
        #expect(buffer.statistics.packetsReordered == 1)
    }

    @Test("The sender's silence is not loss, and sound after it begins in time")
    func discontinuous() throws {
        var buffer = try buffer()
        for index in 0..<50 {
            insert(index, at: index * 20, into: &buffer)
            _ = pull(&buffer, at: index * 20 + 5)
        }
        insert(0, at: 1_000, into: &buffer, sequence: 50, timestamp: 48_000, payload: [Self.voice[49][0]])
        for time in stride(from: 1_005, to: 3_000, by: 20) {
            #expect(pull(&buffer, at: time).frame.concealedSamples == 0)
        }
        for index in 150..<200 {
            insert(index, at: index * 20, into: &buffer, sequence: UInt16(index - 99))
            let (frame, _) = pull(&buffer, at: index * 20 + 5)
            #expect(frame == PulledFrame())
        }
        #expect(buffer.statistics.packetsLost == 0)
        #expect(buffer.statistics.samplesConcealed == 0)
        #expect(buffer.statistics.playoutDelayNanoseconds == 5_000_000)
    }

    @Test("A copy in a later packet takes the place of a packet that did not come, and of no other")
    func copies() throws {
        var buffer = try buffer { $0.initialDelayMilliseconds = 40 }
        let clean = try clean(100)
        var unclean = 0
        for index in 0..<100 {
            if index % 10 != 5 {
                if index > 0 {
                    let packet = Self.voice[index - 1]
                    buffer.insertCopy(
                        payload: packet.span.bytes, timestampOffset: 960, number: Int64(index),
                        timestamp: UInt32(index * 960), ssrc: 1,
                        arrival: Instant(nanoseconds: Int64(index) * 20_000_000))
                }
                insert(index, at: index * 20, into: &buffer)
            }
            let (frame, samples) = pull(&buffer, at: index * 20 + 5)
            #expect(frame.concealedSamples == 0 && frame.recoveredSamples == 0)
            if index >= 2, samples != clean[index - 2] { unclean += 1 }
        }
        let statistics = buffer.statistics
        #expect(unclean == 0, "what is played is the packets' own sound, 40 ms late")
        #expect(statistics.packetsRepaired == 10)
        #expect(statistics.packetsLost == 0 && statistics.packetsLate == 0 && statistics.packetsDuplicate == 0)
    }

    @Test("Packets without sound, such as telephone events, are no loss, and sound after them begins in time")
    func soundless() throws {
        var buffer = try buffer()
        for index in 0..<100 {
            let isEvent = (50..<60).contains(index)
            if isEvent, index != 55 {
                buffer.passOver(number: Int64(index), ssrc: 1)
            } else if !isEvent {
                insert(index, at: index * 20, into: &buffer)
            }
            let (frame, samples) = pull(&buffer, at: index * 20 + 5)
            #expect(frame.concealedSamples == 0)
            #expect(frame.hasReceivedSound(among: 960) == !isEvent)
            if index == 50 { #expect(samples.contains { $0.magnitude > 100 }, "the decoder continues the last word") }
            if !isEvent { #expect(frame == PulledFrame()) }
        }
        #expect(buffer.statistics.packetsLost == 1, "one of them never came")
        #expect(buffer.statistics.playoutDelayNanoseconds == 5_000_000)
    }

    @Test("A packet without sound that comes after its turn is no loss after all")
    func lateSoundless() throws {
        var buffer = try buffer()
        for index in 0..<100 {
            if index != 50 { insert(index, at: index * 20, into: &buffer) }
            _ = pull(&buffer, at: index * 20 + 5)
        }
        #expect(buffer.statistics.packetsLost == 1)
        buffer.passOver(number: 50, ssrc: 2)
        #expect(buffer.statistics.packetsLost == 1, "of another stream")
        buffer.passOver(number: 50, ssrc: 1)
        #expect(buffer.statistics.packetsLost == 0)
    }

    @Test("Another SSRC, or a timestamp from elsewhere, starts afresh and plays on", arguments: [true, false])
    func startsAfresh(changesSSRC: Bool) throws {
        var buffer = try buffer()
        for index in 0..<50 {
            insert(index, at: index * 20, into: &buffer)
            _ = pull(&buffer, at: index * 20 + 5)
        }
        let offset: UInt32 = changesSSRC ? 77 : 2_000_000_000
        var silent = 0
        for index in 50..<100 {
            insert(
                index, at: index * 20, into: &buffer, sequence: UInt16(index) &+ (changesSSRC ? 40_000 : 0),
                timestamp: UInt32(index * 960) &+ offset, ssrc: changesSSRC ? 2 : 1)
            silent += pull(&buffer, at: index * 20 + 5).frame.silentSamples
        }
        #expect(buffer.statistics.resets == 1)
        #expect(buffer.statistics.samplesConcealed == 0)
        #expect(silent <= 960)
    }

    @Test("What waits beyond the maximum delay is discarded, and the rest is played")
    func overflow() throws {
        var buffer = try buffer {
            $0.initialDelayMilliseconds = 0
            $0.maximumDelayMilliseconds = 200
        }
        for index in 0..<50 {
            insert(index, at: index * 20, into: &buffer)
            _ = pull(&buffer, at: index * 20 + 5)
        }
        for time in stride(from: 1_005, to: 2_000, by: 20) { _ = pull(&buffer, at: time) }
        for index in 50..<100 { insert(index, at: 1_999, into: &buffer) }
        for index in 100..<200 {
            insert(index, at: index * 20, into: &buffer)
            _ = pull(&buffer, at: index * 20 + 5)
        }
        #expect((35...45).contains(buffer.statistics.packetsDiscarded))
        #expect(buffer.statistics.playoutDelayNanoseconds < 260_000_000)
    }

    @Test("More packets than fit give way to newer ones, oldest first")
    func full() throws {
        var buffer = try buffer()
        for index in 0..<300 { insert(index % 400, at: index, into: &buffer) }
        #expect(buffer.statistics.packetsDiscarded == 300 - PacketStore.capacity)
        for time in 0..<200 { _ = pull(&buffer, at: 300 + time * 20) }
        #expect(buffer.statistics.samplesPlayed == 200 * 960)
    }

    @Test("Random payloads, numbers, times and pull lengths never trap, and every sample is accounted for")
    func hostile() throws {
        var random = SeededGenerator(seed: 11)
        var buffer = try buffer { _ in }
        var now: Int64 = 0
        var played = 0
        for _ in 0..<1_500 {
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let isReal = Bool.random(using: &random)
                let length = Int.random(in: 0...60, using: &random)
                let noise = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
                let payload = isReal ? Self.voice[Int.random(in: 0..<500, using: &random)] : noise
                let near = Int.random(in: 0...9, using: &random) > 0
                let step = Int(now / 20_000_000) + Int.random(in: -8...8, using: &random)
                buffer.insert(
                    payload: payload.span.bytes,
                    number: near ? Int64(step) : .random(in: -(1 << 40)...(1 << 40), using: &random),
                    timestamp: near
                        ? UInt32(truncatingIfNeeded: step * 960) : .random(in: 0...(.max), using: &random),
                    marker: false, ssrc: UInt32(Int.random(in: 0...200, using: &random) / 200),
                    arrival: Instant(nanoseconds: now + Int64.random(in: -50_000_000...50_000_000, using: &random)))
            }
            var samples = [Int16](repeating: 0, count: Int.random(in: 0...3_000, using: &random))
            var span = samples.mutableSpan
            _ = buffer.pull(into: &span, at: Instant(nanoseconds: now))
            played += samples.count
            now += Int64.random(in: 0...40_000_000, using: &random)
        }
        #expect(buffer.statistics.samplesPlayed == played)
    }
}
