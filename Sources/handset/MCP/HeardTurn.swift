internal import AudioKit
internal import VoiceActivity

/// What the other side of a call says until it pauses: the sound that is worth recognising, and when it is complete. Pure.
struct HeardTurn: ~Copyable, Sendable {
    /// The longest sound that is kept, in seconds: older sound is dropped.
    static let mostSeconds = 120
    /// Samples a second of what recognisers are given.
    static let recognisedHz = 16_000
    /// Sound around speech that is kept, in milliseconds: detection is not exact.
    private static let marginMilliseconds = 400
    /// A sound that is no speech and has no louder sample than this is silence: −42 dBFS.
    private static let silence: UInt16 = 260

    private let rateHz: Int
    private let pause: Int
    private var activity: VoiceActivity
    private var samples: [Int16] = []
    /// Samples that were dropped before the first that is kept.
    private var dropped = 0
    private var speechStart: Int?
    private var speechEnd: Int?

    /// - Parameters:
    ///   - rateHz: Samples a second: a multiple of 8,000 up to 48,000.
    ///   - pause: Of the silence after speech that ends the turn.
    init(rateHz: Int, pause: Duration) {
        self.rateHz = rateHz
        self.pause = Int(pause / .milliseconds(1)) * rateHz / 1_000
        activity = VoiceActivity(rateHz: rateHz)
    }

    /// Length of the sound so far, in seconds.
    var seconds: Double { Double(dropped + samples.count) / Double(rateHz) }

    /// Takes the next samples of the other side.
    mutating func take(_ new: [Int16]) {
        let hop = rateHz / 50
        var start = 0
        while start < new.count {
            let end = min(new.count, start + hop)
            let frame = new[start..<end]
            note(activity.take(frame.span, sent: Span()))
            start = end
        }
        samples += new
        let excess = samples.count - Self.mostSeconds * rateHz
        guard excess > 0 else { return }
        samples.removeFirst(excess)
        dropped += excess
    }

    private mutating func note(_ events: VoiceEvents) {
        for index in 0..<events.count {
            let event = events[index]
            switch event.kind {
            case .confirmed:
                if speechStart == nil { speechStart = event.position }
                speechEnd = nil
            case .ended: if speechStart != nil { speechEnd = event.position }
            case .onset, .retracted: break
            }
        }
    }

    /// Whether there was speech, and a pause after it that lasts until now.
    var isComplete: Bool {
        guard let speechEnd else { return false }
        return dropped + samples.count - speechEnd >= pause
    }

    /// The sound to recognise, at 16 kHz: the speech with a margin; all of it if none was detected, and it is not silent.
    ///
    /// - Returns: Nil if there is nothing to recognise.
    consuming func recognisable() -> [Int16]? {
        let all = dropped..<(dropped + samples.count)
        let margin = rateHz * Self.marginMilliseconds / 1_000
        if let speechStart {
            let end = speechEnd.map { $0 + margin } ?? all.upperBound
            let (first, last) = (max(all.lowerBound, speechStart - margin), min(all.upperBound, end))
            return first < last ? resampled(first..<last) : nil
        }
        guard samples.contains(where: { $0.magnitude > Self.silence }) else { return nil }
        return resampled(all)
    }

    private func resampled(_ range: Range<Int>) -> [Int16]? {
        let input = Array(samples[(range.lowerBound - dropped)..<(range.upperBound - dropped)])
        guard rateHz != Self.recognisedHz else { return input }
        guard var resampler = Resampler(from: rateHz, to: Self.recognisedHz) else { return nil }
        let padded = input + [Int16](repeating: 0, count: resampler.flushSampleCount)
        let length = input.count * Self.recognisedHz / rateHz
        var output = [Int16](repeating: 0, count: length)
        var (consumed, produced) = (0, 0)
        while produced < length, consumed < padded.count {
            var room = output.mutableSpan
            let rest = padded[consumed...]
            let progress = resampler.process(rest.span, into: &room, at: produced)
            guard progress.consumed + progress.produced > 0 else { break }
            consumed += progress.consumed
            produced += progress.produced
        }
        return output
    }
}
