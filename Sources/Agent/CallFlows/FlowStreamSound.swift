internal import AudioKit
internal import AudioPort
internal import Core

/// The bot that takes part in a call for the call's flow: runs the frames of the bot's line, in a media worker's place.
struct ConnectedBot: ~Copyable {
    /// The stream.
    let sid: String
    private var line: PortLine
    private var widener: Resampler?
    /// At 48 kHz, less than a frame.
    private var heard: [Int16] = []
    private static let frameSamples = AudioFormat.samples(milliseconds: 20)

    init(sid: String, line: consuming PortLine, hearing rate: PortRate) {
        self.sid = sid
        self.line = line
        widener = Resampler(from: rate.rawValue, to: AudioFormat.sampleRate)
    }

    /// Passes what the caller says to the bot, and what the bot says to the call's port.
    ///
    /// Silence of the bot is not written, so that sound which has come late is not late from then on.
    ///
    /// - Returns: What was written, at 48 kHz.
    mutating func take(_ samples: [Int16], into port: inout AudioPort, at now: Instant) -> [Int16] {
        heard += resampled(samples, by: &widener, ratio: 3)
        var written: [Int16] = []
        var start = 0
        while heard.count - start >= Self.frameSamples {
            let received = Array(heard[start..<start + Self.frameSamples])
            start += received.count
            var frame = [Int16](repeating: 0, count: received.count)
            // The frames of a line are run here, and not by a media worker: this thread may allocate.
            if port.isSuspended || port.roomAt48kHz < received.count {
                hold(received, &frame)
                continue
            }
            exchange(received, &frame)
            guard frame.contains(where: { $0 != 0 }) else { continue }
            _ = port.write(frame.span, rate: .hz48000, at: now)
            written += frame
        }
        heard.removeFirst(start)
        return written
    }

    private mutating func hold(_ received: [Int16], _ frame: inout [Int16]) {
        let room = frame.mutableSpan
        line.hold(received: received.span, sending: room)
    }

    private mutating func exchange(_ received: [Int16], _ frame: inout [Int16]) {
        var room = frame.mutableSpan
        line.exchange(received: received.span, sending: &room)
    }

    /// The call, or the bot's part in it, has ended.
    mutating func finish() { line.finish() }
}

/// Sound of a call for servers that only hear: what the caller says, and what it hears at the same time.
struct ForkedSound: ~Copyable {
    /// Sound for the caller that may wait to be heard: what a port holds, twice.
    private static let mostWaiting = 2 * AudioPort.queueCapacity

    private var narrower: Resampler?
    private var mixNarrower: Resampler?
    /// At 48 kHz, from the moment on.
    private var waiting: [Int16] = []
    /// What the caller hears, at the servers' rate: less than a frame.
    private var carried: [Int16] = []

    /// - Parameters:
    ///   - heard: The rate of what the caller says.
    ///   - rate: That of what servers get.
    init(hearing heard: PortRate, at rate: PortRate) {
        narrower = Resampler(from: heard.rawValue, to: rate.rawValue)
        mixNarrower = Resampler(from: AudioFormat.sampleRate, to: rate.rawValue)
    }

    /// Sound was put into the call's port, behind what it has: at 48 kHz.
    mutating func wrote(_ samples: some Sequence<Int16>) {
        waiting += samples
        if waiting.count > Self.mostWaiting { waiting.removeFirst(waiting.count - Self.mostWaiting) }
    }

    /// What is in the call's port was discarded.
    mutating func clear() { waiting = [] }

    /// Takes what the caller says, at 16 kHz.
    ///
    /// - Parameter isSuspended: What is in the port waits meanwhile.
    mutating func take(_ samples: [Int16], isSuspended: Bool) -> (inbound: [Int16], outbound: [Int16]) {
        let count = isSuspended ? 0 : min(waiting.count, samples.count * 3)
        let played =
            Array(waiting[..<count]) + [Int16](repeating: 0, count: samples.count * 3 - count)
        waiting.removeFirst(count)
        let inbound = resampled(samples, by: &narrower, ratio: 1)
        var outbound = resampled(played, by: &mixNarrower, ratio: 1)
        // The two resamplers give samples in different portions: both sides are of the same length.
        carried += outbound
        outbound = Array(carried.prefix(inbound.count))
        carried.removeFirst(outbound.count)
        outbound += [Int16](repeating: 0, count: inbound.count - outbound.count)
        return (inbound, outbound)
    }
}

/// Samples at another rate.
///
/// - Parameter ratio: By which there are more of them at most.
private func resampled(_ samples: [Int16], by resampler: inout Resampler?, ratio: Int) -> [Int16] {
    guard !samples.isEmpty, resampler != nil else { return samples }
    var output = [Int16](repeating: 0, count: samples.count * ratio + 64)
    var (consumed, produced) = (0, 0)
    while consumed < samples.count {
        var room = output.mutableSpan
        let rest = samples[consumed...]
        guard let progress = resampler?.process(rest.span, into: &room, at: produced),
            progress.consumed + progress.produced > 0
        else { break }
        consumed += progress.consumed
        produced += progress.produced
    }
    return Array(output[..<produced])
}
