internal import Glibc

/// The powers in bands of all frames of a piece of speech, as it was sent and as it was heard.
struct PieceSpectra: Sendable {
    /// For each frame, the bands' powers as sent.
    private(set) var sent: [[Float]] = []
    /// For each frame, the bands' powers as heard, at the delay that is the likeliest there.
    private(set) var heard: [[Float]] = []
    /// Frames in which there is speech.
    private var sounding: [Int] = []

    var frameCount: Int { sent.count }

    /// - Parameters:
    ///   - sent: At 16 kHz.
    ///   - heard: At 16 kHz.
    ///   - piece: Which samples of `sent`, at 8 kHz.
    init(_ sent: [Float], _ heard: [Float], _ path: DelayPath, piece: Range<Int>, _ bands: BarkBands) {
        let scale = BarkBands.sampleRate / DelayPath.sampleRate
        let end = min(sent.count, piece.upperBound * scale)
        for start in stride(from: piece.lowerBound * scale, to: end - BarkBands.hopSamples, by: BarkBands.hopSamples) {
            let delays = path.candidates(at: (start + BarkBands.frameSamples / 2) / scale)
            var best: (sent: [Float], heard: [Float], distance: Float)?
            for delay in delays {
                let (one, other) = bands.powers(sent, at: start, heard, at: start + delay * scale)
                let distance = delays.count == 1 ? 0 : Self.distance(one, other)
                if distance < best?.distance ?? .infinity { best = (one, other, distance) }
            }
            guard let best else { continue }
            self.sent.append(best.sent)
            self.heard.append(best.heard)
        }
        let powers = self.sent.map { $0[bands.speech].reduce(0, +) }
        let loud = powers.isEmpty ? 0 : powers.sorted()[powers.count * 19 / 20]
        sounding = powers.indices.filter { powers[$0] > 1e-3 * loud }
    }

    /// How much two spectra differ in form, independent of their level.
    private static func distance(_ one: [Float], _ other: [Float]) -> Float {
        let first = one.map { $0.squareRoot().squareRoot() }
        let second = other.map { $0.squareRoot().squareRoot() }
        let (firstSum, secondSum) = (first.reduce(0, +), second.reduce(0, +))
        guard firstSum > 0, secondSum > 0 else { return 2 }
        return zip(first, second).reduce(0) { $0 + abs($1.0 / firstSum - $1.1 / secondSum) }
    }

    /// Brings both to the level of ``QualityModel/speechPower``.
    ///
    /// - Returns: False if nothing was sent.
    mutating func bringToLevel(_ model: QualityModel, _ bands: BarkBands) -> Bool {
        let own = sounding.reduce(Float(0)) { $0 + sent[$1][bands.speech].reduce(0, +) } / Float(max(1, sounding.count))
        let other =
            sounding.reduce(Float(0)) { $0 + heard[$1][bands.speech].reduce(0, +) } / Float(max(1, sounding.count))
        guard own > 0 else { return false }
        let (ownGain, otherGain) = (model.speechPower / own, other > 0 ? model.speechPower / other : 0)
        for frame in sent.indices {
            for band in 0..<bands.count {
                sent[frame][band] *= ownGain
                heard[frame][band] *= otherGain
            }
        }
        return true
    }

    /// Gives what was sent the response of the way, as far as people get used to one.
    mutating func makeUpForResponse(_ model: QualityModel) {
        guard let count = sent.first?.count, !sounding.isEmpty else { return }
        for band in 0..<count {
            let own = sounding.reduce(Float(0)) { $0 + sent[$1][band] } / Float(sounding.count)
            let other = sounding.reduce(Float(0)) { $0 + heard[$1][band] } / Float(sounding.count)
            let ratio = (other + 1_000) / (own + 1_000)
            let bounded = min(model.responseLimit, max(1 / model.responseLimit, ratio))
            for frame in sent.indices { sent[frame][band] *= bounded }
        }
    }

    /// Compensates slow changes of the gain.
    mutating func makeUpForGain(_ model: QualityModel, _ bands: BarkBands) {
        var smooth: Float = 1
        for frame in sent.indices {
            let own = Self.audible(sent[frame], bands)
            let other = Self.audible(heard[frame], bands)
            let ratio = (own + 5_000) / (other + 5_000)
            smooth += 0.8 * (ratio - smooth)
            let gain = min(model.gainLimits.upperBound, max(model.gainLimits.lowerBound, smooth))
            for band in heard[frame].indices { heard[frame][band] *= gain }
        }
    }

    private static func audible(_ powers: [Float], _ bands: BarkBands) -> Float {
        var sum: Float = 0
        for band in powers.indices where powers[band] > bands.thresholds[band] { sum += powers[band] }
        return sum
    }
}
