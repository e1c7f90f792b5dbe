import AudioKit
import Playout
import TestSupport
import Core

/// One profile played once: packets sent through a simulated path into a playout buffer.
struct Run {
    /// Figures over a stretch of the run.
    struct Figures {
        /// Mean time from a packet's arrival to its first sample played.
        var bufferDelayMs = 0.0
        /// The 95th percentile of the same.
        var bufferDelayP95Ms = 0.0
        /// What NetEQ's rule would aim at; see ``ReferenceDelay``.
        var referenceDelayMs = 0.0
        /// Mean delay of the path above its fastest packet, over the whole run.
        var pathJitterMs = 0.0
        /// Mean playout delay above the fastest path, over all frames.
        var playoutDelayMs = 0.0
        var concealedShare = 0.0
        var recoveredShare = 0.0
        var stretchedShare = 0.0
        /// What ``ConstantDelay`` misses when it adds the same delay on the mean, or what was asked for; 0 for the first
        /// seconds, which have no figure of their own.
        var constantMissedShare = 0.0
    }

    var first8Seconds = Figures()
    var whole = Figures()
    var output: [Int16] = []
    var unlimited: [Int16] = []
    var constant: [Int16] = []

    private struct Arrival {
        var packet: Int
        var at: Instant
    }

    init(_ profile: Profile, _ packets: [[UInt8]], seed: UInt64, options: Options) throws {
        let pullSamples = options.pullSamples
        let (arrivals, phase) = Self.deliver(profile, packets.count, seed: seed, options)
        unlimited = try Self.decodeUnlimited(packets, received: Set(arrivals.map(\.packet)))
        var buffer = PlayoutBuffer(configuration: options.configuration, decoder: try OpusDecoder())
        var playoutDelays = RunningMean()
        var next = 0
        var now = phase
        // A little longer than the speech, so that its end is played too.
        let end = Int64(packets.count) * 20_000_000 + 1_000_000_000
        while now < end {
            while next < arrivals.count, arrivals[next].at.nanoseconds <= now {
                Self.insert(arrivals[next], packets, into: &buffer)
                next += 1
            }
            var frame = [Int16](repeating: 0, count: pullSamples)
            var span = frame.mutableSpan
            _ = buffer.pull(into: &span, at: Instant(nanoseconds: now))
            output += frame
            if buffer.statistics.bufferDelayCount > 0 {
                playoutDelays.add(Double(buffer.statistics.playoutDelayNanoseconds) / 1e6)
            }
            now += Int64(pullSamples) * 1_000_000 / 48
            guard next < arrivals.count else { continue }
            whole = Self.figures(buffer.statistics, playoutDelays.mean)
            if now < 8_000_000_000 { first8Seconds = whole }
        }
        addPath(arrivals)
        try addConstant(packets, arrivals, added: options.constantMilliseconds.map(Double.init))
    }

    private static func insert(_ arrival: Arrival, _ packets: [[UInt8]], into buffer: inout PlayoutBuffer) {
        let payload = packets[arrival.packet]
        // The numbers wrap around early in the run.
        buffer.insert(
            payload: payload.span.bytes, number: Int64(arrival.packet + 65_000),
            timestamp: UInt32(truncatingIfNeeded: arrival.packet * 960 + 4_294_000_000), marker: false, ssrc: 1,
            arrival: arrival.at)
    }

    /// Adds what the path did, whoever plays it.
    private mutating func addPath(_ arrivals: [Arrival]) {
        let sent = arrivals.sorted { $0.packet < $1.packet }
        let transits = sent.map { Double($0.at.nanoseconds) / 1e6 - Double($0.packet * 20) }
        whole.pathJitterMs = transits.reduce(0, +) / Double(max(transits.count, 1)) - (transits.min() ?? 0)
        whole.referenceDelayMs = ReferenceDelay.mean(transits)
        first8Seconds.pathJitterMs = whole.pathJitterMs
        first8Seconds.referenceDelayMs = ReferenceDelay.mean(Array(transits.prefix(400)))
    }

    /// Adds what a constant delay of the same mean would do.
    private mutating func addConstant(_ packets: [[UInt8]], _ arrivals: [Arrival], added: Double?) throws {
        let transits = Dictionary(
            arrivals.map { ($0.packet, Double($0.at.nanoseconds) / 1e6 - Double($0.packet * 20)) },
            uniquingKeysWith: min)
        let player = try ConstantDelay(packets, transits: transits, added: added ?? whole.bufferDelayMs)
        constant = player.output
        whole.constantMissedShare = player.missedShare
    }

    private static func figures(_ statistics: PlayoutStatistics, _ playoutDelayMs: Double) -> Figures {
        let played = Double(max(statistics.samplesPlayed, 1))
        var figures = Figures()
        figures.bufferDelayMs = Double(statistics.meanBufferDelayNanoseconds) / 1e6
        figures.bufferDelayP95Ms = Double(statistics.bufferDelayNanoseconds(quantile: 0.95)) / 1e6
        figures.playoutDelayMs = playoutDelayMs
        figures.concealedShare = Double(statistics.samplesConcealed) / played
        figures.recoveredShare = Double(statistics.samplesRecovered) / played
        figures.stretchedShare = Double(statistics.samplesAccelerated + statistics.samplesDecelerated) / played
        return figures
    }

    private static func deliver(
        _ profile: Profile, _ count: Int, seed: UInt64, _ options: Options
    ) -> ([Arrival], phase: Int64) {
        var random = SeededGenerator(seed: seed &* 77 &+ 5)
        let period = Int64(options.pullSamples) * 1_000_000 / 48
        let anyPhase = Int64.random(in: 0..<period, using: &random)
        var network = SimulatedNetwork(profile.network, seed: seed)
        var arrivals: [Arrival] = []
        for packet in 0..<count {
            let sent = network.sendTime(mediaTime: .milliseconds(packet * 20))
            let delivery = network.send(at: sent)
            for at in [delivery.arrival, delivery.duplicate] {
                if let at { arrivals.append(Arrival(packet: packet, at: at)) }
            }
        }
        arrivals.sort { ($0.at, $0.packet) < ($1.at, $1.packet) }
        guard options.startsWithPeer, let first = arrivals.first else { return (arrivals, anyPhase) }
        // A worker runs a call's frames from 1 ms to 6 ms after when packets came that took as long as the first.
        return (arrivals, (first.at.nanoseconds + 1_000_000 + anyPhase * 5_000_000 / period) % period)
    }

    /// What a decoder gives that waits for ever: every packet that ever arrives is used, and FEC for the rest.
    static func decodeUnlimited(_ packets: [[UInt8]], received: Set<Int>) throws -> [Int16] {
        var decoder = try OpusDecoder()
        var output: [Int16] = []
        for index in packets.indices {
            var frame = [Int16](repeating: 0, count: 960)
            var span = frame.mutableSpan
            let packet = packets[index]
            let following = received.contains(index + 1) ? packets[index + 1] : []
            if received.contains(index) {
                _ = decoder.decode(packet.span.bytes, into: &span)
            } else if OpusPacket.hasFEC(following.span.bytes) {
                _ = decoder.recoverFEC(fromNext: following.span.bytes, samples: 960, into: &span)
            } else {
                _ = decoder.conceal(samples: 960, into: &span)
            }
            output += frame
        }
        return output
    }
}

/// The mean of values as they come.
private struct RunningMean {
    private var sum = 0.0
    private var count = 0.0

    mutating func add(_ value: Double) {
        sum += value
        count += 1
    }

    var mean: Double { count == 0 ? 0 : sum / count }
}
