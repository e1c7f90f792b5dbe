// Loopback: measuring a sound card by what it makes of a test signal: what `handset loopback device` and `soak` run.

public import AudioDevices
internal import AudioKit
public import LoopbackAnalysis

/// Between the analysis, which counts samples at 48 kHz, and a card, which counts frames of its own: makes what is played,
/// takes what is captured, and keeps what the card told of itself.
///
/// A card that has 48 kHz gives and gets its frames as they are. For others speexdsp's resampler stands between, at a fixed
/// ratio and with its own delay taken out, so that it neither hides drift nor adds to the delay.
public struct LoopbackTape: ~Copyable {
    /// What the card told.
    public private(set) var statistics = DuplexStatistics()
    /// How numbers captured and played lie against each other, for the whole measurement.
    public private(set) var alignment = BlockAlignment()
    /// How much faster the capturing clock is than the playing one, in samples a sample, as their numbers tell.
    public var clockRate: Double { whole.clockRate }
    /// The same since ``takeRecentAlignment()``.
    private var recent = BlockAlignment()
    /// The same from the beginning on, be it carrier or not.
    private var whole = BlockAlignment()

    private let signal: LoopbackSignal
    private let following: [Int16]
    private let playedScale: Double
    private let capturedScale: Double
    private var playing: RateChange
    private var capturing: RateChange
    private var position = 0
    private var toPlay: [Int16] = []
    private let aligned: Range<Double>

    /// - Parameters:
    ///   - following: Played behind the signal.
    ///   - playbackRate: Frames a second of the card that is played on.
    ///   - captureRate: Frames a second of the card that is captured from.
    /// - Returns: nil if a rate is out of the resampler's range.
    public init?(
        _ signal: LoopbackSignal, followedBy following: [Int16] = [], playbackRate: Int, captureRate: Int
    ) {
        self.signal = signal
        self.following = following
        let rate = AudioFormat.sampleRate
        guard let playing = RateChange(from: rate, to: playbackRate),
            let capturing = RateChange(from: captureRate, to: rate)
        else { return nil }
        self.playing = consume playing
        self.capturing = consume capturing
        playedScale = Double(rate) / Double(playbackRate)
        capturedScale = Double(rate) / Double(captureRate)
        let carrier = signal.sections.first { $0.kind == .carrier }?.range ?? 0..<0
        aligned = Double(carrier.lowerBound)..<Double(carrier.upperBound)
    }

    /// The next `count` frames to play.
    public mutating func frames(_ count: Int) -> [Int16] {
        while toPlay.count < count {
            let wanted = max(480, count - toPlay.count)
            let made = samples(position..<position + wanted)
            position += wanted
            toPlay += playing.change(made)
        }
        defer { toPlay.removeFirst(count) }
        return Array(toPlay.prefix(count))
    }

    private func samples(_ numbers: Range<Int>) -> [Int16] {
        var made = signal.samples(numbers)
        guard !following.isEmpty else { return made }
        for number in numbers.clamped(to: signal.count..<signal.count + following.count) {
            made[number - numbers.lowerBound] = following[number - signal.count]
        }
        return made
    }

    /// What captured frames are at 48 kHz.
    public mutating func samples(of frames: [Int16]) -> [Int16] { capturing.change(frames) }

    /// Takes what the card told.
    public mutating func take(_ note: DuplexNote) {
        statistics.take(note)
        guard case .exchanged = note.event else { return }
        let (captured, played) = (Double(note.captured) * capturedScale, Double(note.played) * playedScale)
        whole.add(captured: captured, played: played)
        guard aligned.contains(captured) else { return }
        alignment.add(captured: captured, played: played)
        recent.add(captured: captured, played: played)
    }

    /// How the numbers lie against each other since this was last asked.
    public mutating func takeRecentAlignment() -> BlockAlignment {
        defer { recent = BlockAlignment() }
        return recent
    }
}

/// A change of rate at a fixed ratio, or none.
private struct RateChange: ~Copyable {
    private var resampler: Resampler?
    private let scale: Double

    /// - Returns: nil if a rate is out of the resampler's range.
    init?(from input: Int, to output: Int) {
        scale = Double(output) / Double(input)
        guard input != output else {
            resampler = nil
            return
        }
        guard let made = Resampler(from: input, to: output, quality: 10) else { return nil }
        resampler = consume made
    }

    mutating func change(_ samples: [Int16]) -> [Int16] {
        var output = [Int16](repeating: 0, count: Int(Double(samples.count) * scale) + 512)
        var (taken, given) = (0, 0)
        while taken < samples.count, given < output.count {
            var room = output.mutableSpan
            guard let progress = resampler?.process(samples.span.extracting(taken...), into: &room, at: given) else {
                return samples
            }
            guard progress.consumed + progress.produced > 0 else { break }
            taken += progress.consumed
            given += progress.produced
        }
        return Array(output.prefix(given))
    }
}

/// What a card told of itself while it was measured.
public struct DuplexStatistics: Equatable, Sendable {
    /// Blocks read and written.
    public private(set) var exchanges = 0
    /// Times that the buffer to play from ran empty.
    public private(set) var playbackXruns = 0
    /// Times that the buffer of what was captured ran over.
    public private(set) var captureXruns = 0
    /// Times that the card was suspended.
    public private(set) var suspends = 0
    /// Times that the card went away.
    public private(set) var losses = 0
    /// The card is away, for this reason (errno).
    public private(set) var absence: Int32?
    /// Frames that this program had not ready to be played, or did not take in time.
    public private(set) var lateFrames = 0
    /// The thread was refused real-time priority.
    public private(set) var isPriorityRefused = false
    private var (available, queue, behind) = (0.0, 0.0, 0.0)

    /// Frames that waited when they were read, in the mean.
    public var meanAvailable: Double { exchanges == 0 ? 0 : available / Double(exchanges) }
    /// Frames that were still to be played when more was handed over, in the mean.
    public var meanQueue: Double { exchanges == 0 ? 0 : queue / Double(exchanges) }
    /// Frames behind the buffer, in the driver or a server, in the mean.
    public var meanBehind: Double { exchanges == 0 ? 0 : behind / Double(exchanges) }

    mutating func take(_ note: DuplexNote) {
        switch note.event {
        case .exchanged(let available, let queue, let behind):
            exchanges += 1
            self.available += Double(available)
            self.queue += Double(queue)
            self.behind += Double(behind)
        case .xrun(.playback): playbackXruns += 1
        case .xrun(.capture): captureXruns += 1
        case .suspended: suspends += 1
        case .lost(let errno):
            losses += 1
            absence = errno
        case .returned: absence = nil
        case .late(let played, let captured): lateFrames += played + captured
        case .priorityRefused: isPriorityRefused = true
        }
    }
}
