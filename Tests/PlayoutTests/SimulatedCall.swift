import AudioKit
import Playout
import Synchronization
import TestSupport
import Core

/// One direction of a call in virtual time: packets of a synthetic voice, a simulated path, a playout buffer.
struct SimulatedCall {
    var network = NetworkProfile()
    var seed: UInt64 = 1
    var packetMilliseconds = 20
    var pullMilliseconds = 20
    var expectedLossPercent = 0
    var configuration = PlayoutConfiguration()
    /// Pulls come this long after the arrivals of a path without jitter.
    var phaseNanoseconds: Int64 = 7_000_000
    var firstSequence: UInt16 = 100
    var firstTimestamp: UInt32 = 1_000
    var keepsOutput = false
    /// How long after a request lost packets would come; nil if none are asked for.
    var repairNanoseconds: Int64?

    struct Result {
        var statistics: PlayoutStatistics
        var output: [Int16] = []
        /// Statistics at the end of each virtual second.
        var seconds: [PlayoutStatistics] = []
        /// Packets the path lost.
        var lost = 0
        var duplicated = 0
    }

    private struct Coding: Hashable {
        var packetMilliseconds: Int
        var expectedLossPercent: Int
    }

    /// What the encoder made of the voice, which is the same in all calls that are coded alike.
    private static let coded = Mutex<[Coding: [[UInt8]]]>([:])

    /// Ten seconds of packets, sent again and again.
    func packets() throws -> [[UInt8]] {
        let coding = Coding(packetMilliseconds: packetMilliseconds, expectedLossPercent: expectedLossPercent)
        return try Self.coded.withLock { coded in
            if let known = coded[coding] { return known }
            let made = try encoded()
            coded[coding] = made
            return made
        }
    }

    private func encoded() throws -> [[UInt8]] {
        var settings = EncoderSettings()
        settings.expectedLossPercent = expectedLossPercent
        settings.frameDuration = EncoderSettings.FrameDuration(rawValue: packetMilliseconds) ?? .twentyMilliseconds
        settings.complexity = 0
        var encoder = try OpusEncoder(settings: settings)
        let pcm = SyntheticVoice.samples(480_000)
        return stride(from: 0, to: pcm.count - encoder.frameSampleCount + 1, by: encoder.frameSampleCount).map {
            start in
            var packet = [UInt8](repeating: 0, count: 1_275)
            var room = packet.mutableSpan
            let length = encoder.encode(pcm.span.extracting(start..<(start + encoder.frameSampleCount)), into: &room)
            return Array(packet.prefix(length))
        }
    }

    /// Plays `seconds` of the call.
    func run(seconds: Int) throws -> Result {
        let packets = try packets()
        var path = SimulatedNetwork(network, seed: seed)
        var buffer = PlayoutBuffer(configuration: configuration, decoder: try OpusDecoder())
        buffer.repairNanoseconds = repairNanoseconds
        var result = Result(statistics: buffer.statistics)
        var inFlight: [(at: Instant, index: Int)] = []
        var sent = 0
        let period = Int64(pullMilliseconds) * 1_000_000
        var now = Int64(network.baseDelayMilliseconds * 1e6) + phaseNanoseconds
        let end = now + Int64(seconds) * 1_000_000_000
        var frame = [Int16](repeating: 0, count: pullMilliseconds * 48)
        while now < end {
            while case let time = path.sendTime(mediaTime: .milliseconds(sent * packetMilliseconds)),
                time.nanoseconds <= now
            {
                let delivery = path.send(at: time)
                if let arrival = delivery.arrival { inFlight.append((arrival, sent)) } else { result.lost += 1 }
                if let duplicate = delivery.duplicate {
                    inFlight.append((duplicate, sent))
                    result.duplicated += 1
                }
                sent += 1
            }
            if inFlight.count > 1 { inFlight.sort { $0.at < $1.at } }
            while let next = inFlight.first, next.at.nanoseconds <= now {
                inFlight.removeFirst()
                insert(packets[next.index % packets.count], next.index, next.at, into: &buffer)
            }
            var room = frame.mutableSpan
            _ = buffer.pull(into: &room, at: Instant(nanoseconds: now))
            if keepsOutput { result.output += frame }
            now += period
            if now / 1_000_000_000 != (now - period) / 1_000_000_000 { result.seconds.append(buffer.statistics) }
        }
        result.statistics = buffer.statistics
        return result
    }

    private func insert(_ packet: [UInt8], _ index: Int, _ at: Instant, into buffer: inout PlayoutBuffer) {
        buffer.insert(
            payload: packet.span.bytes, number: Int64(firstSequence) + Int64(index),
            timestamp: firstTimestamp &+ UInt32(truncatingIfNeeded: index * packetMilliseconds * 48),
            marker: index == 0, ssrc: 0x1234, arrival: at)
    }
}

extension PlayoutStatistics {
    var concealedShare: Double { Double(samplesConcealed) / Double(max(samplesPlayed, 1)) }
    var meanDelayMilliseconds: Double { Double(meanBufferDelayNanoseconds) / 1e6 }
    var playoutDelayMilliseconds: Double { Double(playoutDelayNanoseconds) / 1e6 }
}
