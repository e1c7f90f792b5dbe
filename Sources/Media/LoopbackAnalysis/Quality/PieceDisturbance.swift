internal import Glibc

/// How much some seconds of speech were disturbed.
struct PieceDisturbance: Equatable, Sendable {
    /// By all that differs.
    let symmetric: Double
    /// By what was added.
    let asymmetric: Double
    /// How often the delay changed.
    let changes: Int

    /// How good it sounds, 1 to ``QualityScale/best``.
    var score: Double { QualityScale.score(symmetric: symmetric, asymmetric: asymmetric, changes: changes) }

    /// Frames over which the worst is heard, and from one such interval to the next.
    private static let interval = (frames: 20, step: 10)

    /// Compares `heard` with the samples `piece` (at 8 kHz) of `sent`, both at 16 kHz.
    ///
    /// - Returns: nil if `sent` is silent there.
    init?(_ sent: [Float], _ heard: [Float], _ path: DelayPath, piece: Range<Int>, _ model: QualityModel) {
        let bands = BarkBands()
        var spectra = PieceSpectra(sent, heard, path, piece: piece, bands)
        guard spectra.bringToLevel(model, bands) else { return nil }
        spectra.makeUpForResponse(model)
        spectra.makeUpForGain(model, bands)
        var (symmetric, asymmetric) = ([Float](), [Float]())
        for frame in 0..<spectra.frameCount {
            let (all, added) = Self.disturbance(spectra.sent[frame], spectra.heard[frame], bands, model)
            let power = spectra.sent[frame].reduce(0, +)
            let weight = pow((power + 1e-3 * model.speechPower) / model.speechPower, -model.softnessExponent)
            symmetric.append(min(model.greatestDisturbance, all * weight))
            asymmetric.append(min(model.greatestDisturbance, added * weight))
        }
        changes = path.jumps
        self.symmetric = Self.together(symmetric, model)
        self.asymmetric = Self.together(asymmetric, model)
    }

    /// How much one frame is disturbed.
    private static func disturbance(_ sent: [Float], _ heard: [Float], _ bands: BarkBands, _ model: QualityModel) -> (
        all: Float, added: Float
    ) {
        let width = Float(BarkBands.width)
        var (squares, added) = (Float(0), Float(0))
        for band in 0..<bands.count {
            let one = model.loudness(sent[band], bands.thresholds[band])
            let other = model.loudness(heard[band], bands.thresholds[band])
            let difference = other - one
            let unmasked = max(0, abs(difference) - model.maskedShare * min(one, other)) * width
            guard unmasked > 0 else { continue }
            squares += unmasked * unmasked / width
            let ratio = pow(
                (heard[band] + model.asymmetryFloor) / (sent[band] + model.asymmetryFloor), model.asymmetryExponent)
            if ratio >= model.asymmetryLeast { added += unmasked * min(model.asymmetryMost, ratio) }
        }
        let total = width * Float(bands.count)
        return ((squares * total).squareRoot(), added)
    }

    /// Frames summed up over intervals, and these over the piece.
    private static func together(_ frames: [Float], _ model: QualityModel) -> Double {
        var sums: [Double] = []
        for start in stride(from: 0, to: max(1, frames.count - interval.step), by: interval.step) {
            let part = frames[start..<min(frames.count, start + interval.frames)]
            let mean = part.reduce(0.0) { $0 + pow(Double($1), Double(model.shortExponent)) } / Double(part.count)
            sums.append(pow(mean, Double(model.longExponent / model.shortExponent)))
        }
        return pow(sums.reduce(0, +) / Double(max(1, sums.count)), 1 / Double(model.longExponent))
    }
}

extension QualityModel {
    /// Loudness of a power in a band (Zwicker), 0 at the threshold of hearing.
    func loudness(_ power: Float, _ threshold: Float) -> Float {
        guard power > threshold else { return 0 }
        let scale = loudnessScale * pow(threshold / 0.5, loudnessExponent)
        return scale * (pow(0.5 + 0.5 * power / threshold, loudnessExponent) - 1)
    }
}
