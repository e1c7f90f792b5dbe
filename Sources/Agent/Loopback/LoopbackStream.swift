// Loopback: measures sound cards, calls and bots for `handset loopback`, and reports what it measured.

public import AudioDevices
internal import AudioKit
public import LoopbackAnalysis
internal import Core

/// Connects the analysis, which counts samples at 48 kHz, with a card, which counts its own frames: provides the played
/// samples, takes the captured ones, and stores the card's reports.
///
/// Frames of a card with 48 kHz are unchanged. For others speexdsp's resampler converts them, at a fixed ratio and with
/// its own delay removed, so that it neither hides drift nor adds to the delay.
public struct LoopbackStream: ~Copyable {
    /// The card's reports.
    public private(set) var statistics = DuplexStatistics()
    /// The relation of captured and played sample numbers, for the whole measurement.
    public private(set) var alignment = BlockAlignment()
    /// Captured samples at 48 kHz in which the card was interrupted, in order; the last ones of very many.
    public private(set) var interruptions: [Range<Int>] = []
    /// Captured samples at 48 kHz at which gaps begin because this program's own thread was held up; the first ones of
    /// very many.
    private var ownInterruptions: [Range<Int>] = []
    /// How much faster the capturing clock is than the playing one, in samples per sample, from their numbers.
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
    private var capturingLeft: RateChange
    private var capturingRight: RateChange
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
            let capturing = RateChange(from: captureRate, to: rate),
            let capturingLeft = RateChange(from: captureRate, to: rate),
            let capturingRight = RateChange(from: captureRate, to: rate)
        else { return nil }
        self.capturingLeft = consume capturingLeft
        self.capturingRight = consume capturingRight
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

    /// Captured frames, converted to 48 kHz.
    public mutating func samples(of frames: [Int16]) -> [Int16] { capturing.change(frames) }

    /// Captured stereo frames, converted to 48 kHz: their mean, as in calls, and each channel.
    public mutating func samples(ofPairs pairs: [Int16]) -> (mean: [Int16], left: [Int16], right: [Int16]) {
        var (mean, left, right): ([Int16], [Int16], [Int16]) = ([], [], [])
        for index in stride(from: 0, to: pairs.count - 1, by: 2) {
            left.append(pairs[index])
            right.append(pairs[index + 1])
            mean.append(Int16(truncatingIfNeeded: (Int32(pairs[index]) + Int32(pairs[index + 1])) >> 1))
        }
        return (capturing.change(mean), capturingLeft.change(left), capturingRight.change(right))
    }

    /// Takes a report of the card.
    public mutating func take(_ note: DuplexNote) {
        let ownXruns = statistics.ownXruns
        statistics.take(note)
        keepInterruption(note, isOwn: statistics.ownXruns > ownXruns)
        guard case .exchanged = note.event else { return }
        let (captured, played) = (Double(note.captured) * capturedScale, Double(note.played) * playedScale)
        whole.add(captured: captured, played: played)
        guard aligned.contains(captured) else { return }
        alignment.add(captured: captured, played: played)
        recent.add(captured: captured, played: played)
    }

    /// Counts the gaps whose first captured samples are at an xrun that this program's own thread caused.
    ///
    /// - Parameter positions: First captured sample of each gap, at 48 kHz.
    func ownGaps(at positions: [Int]) -> Int {
        positions.count { position in ownInterruptions.contains { $0.contains(position) } }
    }

    private mutating func keepInterruption(_ note: DuplexNote, isOwn: Bool) {
        switch note.event {
        case .exchanged, .priorityRefused, .heldUp: return
        case .xrun, .suspended, .lost, .returned, .late: break
        }
        let start = Int(Double(note.captured) * capturedScale)
        let end = start + Self.interruptionSamples
        if isOwn, ownInterruptions.count < Self.mostInterruptions {
            ownInterruptions.append(start - Self.onsetSamples..<end)
        }
        if let last = interruptions.last, start <= last.upperBound {
            interruptions[interruptions.count - 1] = last.lowerBound..<max(last.upperBound, end)
            return
        }
        if interruptions.count >= Self.mostInterruptions { interruptions.removeFirst() }
        interruptions.append(start..<end)
    }

    /// How long an interruption lasts: until both directions run again, and the buffered samples have passed.
    private static let interruptionSamples = AudioFormat.sampleRate / 5
    private static let mostInterruptions = 1_000
    /// How far before an xrun its gap is found to begin at most: 20 ms.
    private static let onsetSamples = AudioFormat.sampleRate / 50

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

/// A card's reports while it was measured.
public struct DuplexStatistics: Equatable, Sendable {
    /// Blocks read and written.
    public private(set) var exchanges = 0
    /// Times that the buffer to play from ran empty.
    public private(set) var playbackXruns = 0
    /// Times that the buffer of what was captured ran over.
    public private(set) var captureXruns = 0
    /// How many of both came right after this program's own thread had been held up for longer than the buffer lasts.
    public private(set) var ownXruns = 0
    /// The longest that thread was held up, in milliseconds, of times that are worth telling.
    public private(set) var longestHoldUpMilliseconds = 0.0
    /// When the thread was last found to have been held up, in nanoseconds; nil once a later block was exchanged.
    private var heldUpAt: Int64?
    /// Times that the card was suspended.
    public private(set) var suspends = 0
    /// Times that the card went away.
    public private(set) var losses = 0
    /// The card is gone, for this reason (errno).
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
            // A block of the same step may still be followed by the xrun.
            if heldUpAt != note.at.nanoseconds { heldUpAt = nil }
            exchanges += 1
            self.available += Double(available)
            self.queue += Double(queue)
            self.behind += Double(behind)
        case .xrun(let direction):
            if direction == .playback { playbackXruns += 1 } else { captureXruns += 1 }
            if heldUpAt != nil { ownXruns += 1 }
        case .heldUp(let nanoseconds):
            heldUpAt = note.at.nanoseconds
            longestHoldUpMilliseconds = max(longestHoldUpMilliseconds, Double(nanoseconds) / 1e6)
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
