internal import AudioKit
internal import Glibc

/// Estimates the quality of speech after a path that is not transparent, from its input and its output.
///
/// The published ideas are those of ITU-T P.862 (PESQ): both are brought to the same level and aligned moment by
/// moment, following the delay. Then their loudness in bands of the Bark scale is compared, without masked differences;
/// added sound counts more than missing sound. This gives two figures, which ``QualityScale`` maps to the scale of
/// wideband PESQ.
public struct SpeechQualityAnalysis: Sendable {
    var model = QualityModel()

    /// The shortest reference that can be rated, in seconds.
    public static let leastSeconds = 2.0
    /// The approximate length of a rated piece: people, and PESQ, rate sentences.
    private static let pieceSeconds = 8.0

    /// Makes an analysis.
    public init() {}

    /// Compares `degraded` with `reference`, both mono at 48 kHz, and beginning at the same moment or `degraded` up to 3 s
    /// later. Level and polarity make no difference, nor do delays that change by up to 0.2 s within some seconds.
    ///
    /// - Returns: nil if there is too little speech in `reference` (see ``leastSeconds``), or if most of its place lies
    ///   behind the end of `degraded`.
    /// - Complexity: O(n); about 15 ms for each second in a release build.
    public func compare(reference: [Int16], degraded: [Int16]) -> SpeechQuality? {
        let (toMiddle, toLow) = (Decimator(factor: 3, tapCount: 97), Decimator(factor: 2, tapCount: 31))
        let sent = toMiddle.decimate(reference.map(Float.init))
        var heard = toMiddle.decimate(degraded.map(Float.init))
        let sentLow = Self.levelled(toLow.decimate(sent))
        var heardLow = Self.levelled(toLow.decimate(heard))
        guard let speech = Self.speech(in: sentLow), heardLow.count > speech.lowerBound + DelayPath.sampleRate else {
            return nil
        }
        if Self.isInverted(sentLow, heardLow, speech) {
            heard = heard.map { -$0 }
            heardLow = heardLow.map { -$0 }
        }
        let pieces = max(1, Int((Double(speech.count) / Double(DelayPath.sampleRate) / Self.pieceSeconds).rounded()))
        var found: [PieceDisturbance] = []
        for index in 0..<pieces {
            let piece =
                speech.lowerBound + speech.count * index / pieces..<speech.lowerBound + speech.count * (index + 1)
                / pieces
            // Speech that had not returned when the recording ended is not rated.
            guard piece.upperBound <= heardLow.count + DelayPath.tolerance else { break }
            let path = DelayPath(sentLow, heardLow, piece: piece)
            guard let disturbance = PieceDisturbance(sent, heard, path, piece: piece, model) else { continue }
            found.append(disturbance)
        }
        guard !found.isEmpty else { return nil }
        let scores = found.map(\.score)
        let count = Double(found.count)
        return SpeechQuality(
            score: scores.reduce(0, +) / count, worstScore: scores.min() ?? 1, pieces: found.count,
            seconds: Double(speech.count) / Double(DelayPath.sampleRate) * count / Double(pieces),
            delayChanges: found.reduce(0) { $0 + $1.changes },
            disturbance: found.reduce(0) { $0 + $1.symmetric } / count,
            addedDisturbance: found.reduce(0) { $0 + $1.asymmetric } / count)
    }

    /// Without what is constant, and with a mean square of 1 000²: what follows needs no other scale.
    private static func levelled(_ samples: [Float]) -> [Float] {
        var mean: Float = 0
        var (before, made) = (Float(0), samples)
        for index in made.indices {
            mean += (made[index] - mean) * 0.04
            // The spectrum of speech falls towards high frequencies; whitened speech is easier to distinguish from
            // itself a moment later.
            let value = made[index] - mean
            made[index] = value - 0.7 * before
            before = value
        }
        let power = made.reduce(0.0) { $0 + Double($1 * $1) } / Double(max(1, made.count))
        guard power > 0 else { return made }
        let gain = Float(1_000 / power.squareRoot())
        return made.map { $0 * gain }
    }

    /// From the first to the last sound of `samples`, with a tenth of a second around; nil if it is too short.
    private static func speech(in samples: [Float]) -> Range<Int>? {
        let block = DelayPath.sampleRate / 50
        let powers = stride(from: 0, to: samples.count - block + 1, by: block).map { start in
            samples[start..<start + block].reduce(0) { $0 + $1 * $1 }
        }
        guard let loudest = powers.max(), loudest > 0 else { return nil }
        let sounding = powers.indices.filter { powers[$0] > loudest * 3e-4 }
        guard let first = sounding.first, let last = sounding.last else { return nil }
        let range = max(0, (first - 5) * block)..<min(samples.count, (last + 6) * block)
        return Double(range.count) >= leastSeconds * Double(DelayPath.sampleRate) ? range : nil
    }

    /// Whether what came back is more like the reference upside down.
    private static func isInverted(_ sent: [Float], _ heard: [Float], _ speech: Range<Int>) -> Bool {
        let piece = speech.prefix(8 * DelayPath.sampleRate)
        let sentPart = sent[piece]
        let heardPart = heard[piece.lowerBound..<min(heard.count, piece.upperBound + DelayPath.longestDelay)]
        let transform = FourierTransform(minimumCount: sentPart.count + heardPart.count)
        let correlation = transform.correlate(sentPart, heardPart).prefix(DelayPath.longestDelay)
        return -(correlation.min() ?? 0) > 1.5 * (correlation.max() ?? 0)
    }
}

/// How good speech sounds that came through a codec and a network: an estimate of what people would say of it.
public struct SpeechQuality: Equatable, Sendable {
    /// On the scale of ITU-T P.862.2 (MOS-LQO), 1.0 (bad) … 4.64 (the path is inaudible); the mean over all pieces.
    public var score: Double
    /// The piece of some eight seconds that was worst.
    public var worstScore: Double
    /// Pieces that were measured.
    public var pieces: Int
    /// Seconds of the reference that were measured.
    public var seconds: Double
    /// How often the delay changed while it was measured.
    public var delayChanges: Int
    /// How much what came back differs from the reference, to the ear; no unit.
    public var disturbance: Double
    /// How much was added to the reference, to the ear; no unit.
    public var addedDisturbance: Double

    /// The range of ``score``.
    public static let range = 1.0...QualityScale.best

    /// The category of ITU-T P.800.
    public var word: String {
        switch score {
        case 4...: "good"
        case 3...: "fair"
        case 2...: "poor"
        default: "bad"
        }
    }
}

/// 48 kHz to 16 kHz, and 16 kHz to 8 kHz, each through a low pass of finite length; without delay.
private struct Decimator {
    private let taps: [Float]
    private let factor: Int

    /// - Parameters:
    ///   - factor: Number of samples that become one.
    ///   - tapCount: Odd.
    init(factor: Int, tapCount: Int) {
        self.factor = factor
        let middle = Double(tapCount / 2)
        // The band ends where 93 % of what the new rate can have are reached.
        let edge = 0.93 / Double(factor)
        let raw = (0..<tapCount).map { tap -> Double in
            let time = Double(tap) - middle
            let sinc = time == 0 ? edge : sin(Double.pi * edge * time) / (Double.pi * time)
            return sinc * (0.5 + 0.5 * cos(Double.pi * time / (middle + 1)))
        }
        let sum = raw.reduce(0, +)
        taps = raw.map { Float($0 / sum) }
    }

    func decimate(_ samples: [Float]) -> [Float] {
        let middle = taps.count / 2
        var made = [Float](repeating: 0, count: samples.count / factor)
        let padding = [Float](repeating: 0, count: middle)
        let padded = padding + samples + padding
        var index = 0
        while index < made.count {
            made[index] = dotProduct(padded, index * factor, taps, 0, taps.count)
            index += 1
        }
        return made
    }
}
