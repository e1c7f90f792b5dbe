import AudioKit
import TestSupport
import Testing
import Core

@testable import Playout

/// What gaps in the packet numbers mean, with packets put into a buffer by hand.
@Suite("Gaps between packets")
struct GapTests {
    private static let voice: [[UInt8]] = (try? SimulatedCall().packets()) ?? []
    private static let protected: [[UInt8]] = {
        var call = SimulatedCall()
        call.expectedLossPercent = 20
        return (try? call.packets()) ?? []
    }()

    private static func buffer(_ change: (inout PlayoutConfiguration) -> Void = { _ in }) throws -> PlayoutBuffer {
        var configuration = PlayoutConfiguration()
        configuration.initialDelayMilliseconds = 0
        change(&configuration)
        return PlayoutBuffer(configuration: configuration, decoder: try OpusDecoder())
    }

    private static func instant(_ milliseconds: Double) -> Instant { Instant(nanoseconds: Int64(milliseconds * 1e6)) }

    /// Packet `index` of the voice, as if sent every 20 ms; `sequence` and `timestamp` as if nothing was special.
    private static func insert(
        _ index: Int, at milliseconds: Double, into buffer: inout PlayoutBuffer, sequence: Int? = nil,
        timestamp: Int? = nil, payload: [UInt8]? = nil
    ) {
        let packet = payload ?? voice[index % voice.count]
        buffer.insert(
            payload: packet.span.bytes, number: Int64(sequence ?? index),
            timestamp: UInt32(timestamp ?? index * 960), marker: false, ssrc: 1, arrival: instant(milliseconds))
    }

    /// A copy of packet `index` in packet `carrier`.
    private static func insertCopy(
        of index: Int, in carrier: Int, at milliseconds: Double, into buffer: inout PlayoutBuffer,
        sequence: Int? = nil, timestamp: Int? = nil, age: Int? = nil
    ) {
        let packet = voice[index % voice.count]
        buffer.insertCopy(
            payload: packet.span.bytes, timestampOffset: UInt32((age ?? carrier - index) * 960),
            number: Int64(sequence ?? carrier),
            timestamp: UInt32(timestamp ?? carrier * 960), ssrc: 1, arrival: instant(milliseconds))
    }

    private static func restores(_ packet: [UInt8]) -> Bool { OpusPacket.hasFEC(packet.span.bytes) }

    private static func pull(_ buffer: inout PlayoutBuffer, at milliseconds: Double) -> (PulledFrame, [Int16]) {
        var samples = [Int16](repeating: 1, count: 960)
        var span = samples.mutableSpan
        let frame = buffer.pull(into: &span, at: instant(milliseconds))
        return (frame, samples)
    }

    /// Two minutes in which bursts of three packets are lost now and then; each packet may carry copies of those before.
    private static func delay(copies: [Int], repair milliseconds: Int64?) throws -> Double {
        var buffer = try buffer()
        buffer.repairNanoseconds = milliseconds.map { $0 * 1_000_000 }
        for index in 0..<1_500 {
            if index % 25 < 22 {
                for age in copies where index >= age {
                    insertCopy(of: index - age, in: index, at: Double(index) * 20, into: &buffer)
                }
                insert(index, at: Double(index) * 20, into: &buffer)
            }
            _ = pull(&buffer, at: Double(index) * 20 + 5)
        }
        return buffer.statistics.playoutDelayMilliseconds
    }

    @Test("Packets that carry copies show gaps like others: the delay makes room for repairs of what no copy restores")
    func repairsBesideCopies() throws {
        let copiesAlone = try Self.delay(copies: [1], repair: nil)
        let both = try Self.delay(copies: [1], repair: 60)
        let allCopied = try Self.delay(copies: [1, 2, 3], repair: 160)
        #expect(copiesAlone < 45, "the last of each burst comes 20 ms late, as a copy: \(copiesAlone)")
        #expect((100...150).contains(both), "three packets until the gap shows, and 60 ms for the repair: \(both)")
        #expect(allCopied < 90, "where copies restore all, nothing waits for repairs: \(allCopied)")
    }

    @Test("A copy is placed by its timestamp, though the sender repeats the packet before the last alone")
    func secondToLast() throws {
        var buffer = try Self.buffer { $0.initialDelayMilliseconds = 60 }
        var frames = 0
        for index in 0..<100 {
            if index % 10 != 5 {
                if index >= 2 { Self.insertCopy(of: index - 2, in: index, at: Double(index) * 20, into: &buffer) }
                Self.insert(index, at: Double(index) * 20, into: &buffer)
            }
            let (frame, _) = Self.pull(&buffer, at: Double(index) * 20 + 5)
            frames += frame.concealedSamples + frame.recoveredSamples
        }
        let statistics = buffer.statistics
        #expect(statistics.packetsRepaired == 10 && statistics.packetsLost == 0 && frames == 0)
    }

    @Test("After a pause, in which timestamps continue without numbers, a copy still gets its packet's place")
    func copyAfterPause() throws {
        var buffer = try Self.buffer { $0.initialDelayMilliseconds = 40 }
        var repaired = 0
        for index in 0..<60 {
            // Every 20 packets the sender is silent for 400 ms, and the first packet after that is lost.
            let time = index + index / 20 * 20
            if index < 20 || index % 20 != 0 {
                if index % 20 != 0 {
                    Self.insertCopy(
                        of: index - 1, in: time, at: Double(time) * 20, into: &buffer, sequence: index,
                        timestamp: time * 960, age: 1)
                }
                Self.insert(
                    index, at: Double(time) * 20, into: &buffer, timestamp: time * 960,
                    payload: index % 20 == 19 ? [Self.voice[index][0]] : nil)
            }
            for pause in 0..<(index % 20 == 19 ? 21 : 1) {
                _ = Self.pull(&buffer, at: Double(time + pause) * 20 + 5)
            }
            repaired = buffer.statistics.packetsRepaired
        }
        #expect(repaired == 2 && buffer.statistics.packetsLost == 0)
    }

    @Test("Packets that are overtaken by less than a millisecond are not asked for, and do not make the delay longer")
    func overtaken() throws {
        var buffer = try Self.buffer()
        buffer.repairNanoseconds = 150_000_000
        var asked = 0
        for index in stride(from: 0, to: 3_000, by: 2) {
            let isSwapped = index % 10 == 4
            let time = Double(index) * 20
            if !isSwapped { Self.insert(index, at: time, into: &buffer) }
            _ = Self.pull(&buffer, at: time + 15)
            Self.insert(index + 1, at: time + 20, into: &buffer)
            if isSwapped {
                let next = Self.instant(time + 35)
                let early = buffer.nextMissing(
                    from: .min, nextPull: next, frameSamples: 960, at: Self.instant(time + 20.3))
                asked += early == nil ? 0 : 1
                #expect(index < 100 || buffer.nextMissingAt == Self.instant(time + 22))
                Self.insert(index, at: time + 20.7, into: &buffer)
            }
            _ = Self.pull(&buffer, at: time + 35)
        }
        #expect(asked == 0)
        #expect(buffer.statistics.playoutDelayMilliseconds < 50, "\(buffer.statistics.playoutDelayMilliseconds)")
    }

    @Test("A packet that does not come within two milliseconds of a later one is missing")
    func missing() throws {
        var buffer = try Self.buffer { $0.initialDelayMilliseconds = 60 }
        for index in 0..<10 {
            Self.insert(index, at: Double(index) * 20, into: &buffer)
            _ = Self.pull(&buffer, at: Double(index) * 20 + 5)
        }
        Self.insert(11, at: 220, into: &buffer)
        let next = Self.instant(225)
        let soon = buffer.nextMissing(from: .min, nextPull: next, frameSamples: 960, at: Self.instant(221.9))
        let later = buffer.nextMissing(from: .min, nextPull: next, frameSamples: 960, at: Self.instant(222))
        #expect(soon == nil && later?.sequenceNumber == 10)
        let due = buffer.nextMissingAt
        #expect(due == nil)
    }

    @Test("The lost first packet of a talk spurt is restored from the next, and is not taken for the sender's silence")
    func talkSpurt() throws {
        var buffer = try Self.buffer { $0.initialDelayMilliseconds = 40 }
        var (recovered, silent) = (0, 0)
        // A packet that restores the one before, which most of this voice do.
        let restoring = (50..<100).filter { Self.restores(Self.protected[$0]) }
        let first = try #require(restoring.first)
        for index in 0..<10 {
            Self.insert(index, at: Double(index) * 20, into: &buffer, payload: Self.protected[index])
            _ = Self.pull(&buffer, at: Double(index) * 20 + 5)
        }
        Self.insert(10, at: 200, into: &buffer, payload: [Self.protected[9][0]])
        for time in stride(from: 205.0, to: 1_000, by: 20) { _ = Self.pull(&buffer, at: time) }
        // Number 11 and the time of packet 50 begin the talk spurt; that packet is lost.
        for offset in 0..<20 {
            let time = Double(50 + offset) * 20
            if offset > 0 {
                Self.insert(
                    0, at: time, into: &buffer, sequence: 11 + offset, timestamp: (50 + offset) * 960,
                    payload: Self.protected[first - 1 + offset])
            }
            let (frame, _) = Self.pull(&buffer, at: time + 5)
            recovered += frame.recoveredSamples
            if offset > 4 { silent += frame.silentSamples }
        }
        #expect(recovered == 960 && silent == 0, "\(recovered), \(silent)")
        #expect(buffer.statistics.packetsLost == 1)
    }
}
