internal import Glibc

/// Brings disturbances onto the scale of MOS-LQO, with the curve that ITU-T P.862.2 has for it.
///
/// The three weights, and they alone, are fitted to wideband PESQ, by Benchmarks/Quality, which says how well they hold.
enum QualityScale {
    /// The rating of undamaged speech.
    static let best = 4.64

    private static let symmetricWeight = 0.1371
    private static let asymmetricWeight = 0.1021
    private static let changeWeight = 0.3073
    /// Added sound disturbs less than proportionally.
    private static let asymmetricExponent = 0.75

    /// The score of speech with these disturbances, in which the delay changed so often.
    static func score(symmetric: Double, asymmetric: Double, changes: Int) -> Double {
        let undisturbed = log((5 - best) / (best - 1))
        let harm =
            symmetricWeight * symmetric + asymmetricWeight * pow(asymmetric, asymmetricExponent)
            + changeWeight * Double(changes).squareRoot()
        return 1 + 4 / (1 + exp(undisturbed + harm))
    }
}

/// The model of the ear: the constants of ``SpeechQualityAnalysis``.
///
/// Powers are those of bands, on a scale on which speech has ``speechPower`` where it sounds, and on which 1 is the
/// threshold of hearing at 0 dB SPL. The formulas are those of ITU-T P.862; constants that differ were chosen by
/// comparing the measure with P.862.2 (Benchmarks/Quality).
struct QualityModel: Sendable {
    /// Speech is brought to this power, in the mean over all frames that hold any: 82 dB, at which people are asked.
    var speechPower: Float = 1.6e8
    /// Loudness grows with this power of the power (Zwicker).
    var loudnessExponent: Float = 0.23
    /// Loudness of 1 on the scale on which differences are summed.
    var loudnessScale: Float = 0.24
    /// A difference below this share of the softer of two loudnesses is masked by them.
    var maskedShare: Float = 0.25
    /// Added sound disturbs more than missing sound: by its ratio to this power.
    var asymmetryExponent: Float = 1.2
    /// Ratios of powers far below this do not count, because such sounds are too soft.
    var asymmetryFloor: Float = 10
    /// Ratios below this leave no asymmetric disturbance, …
    var asymmetryLeast: Float = 2
    /// … and greater ones than this count as this.
    var asymmetryMost: Float = 20
    /// A frame disturbs no more than this, however much it differs.
    var greatestDisturbance: Float = 45
    /// A disturbance counts the more, the softer the frame is that it is in: by this power of the frame's.
    var softnessExponent: Float = 0.04
    /// How far the path's response is compensated, in both directions, as a ratio of powers.
    var responseLimit: Float = 100
    /// How far changes of the gain are followed, as ratios of powers.
    var gainLimits: ClosedRange<Float> = 3e-4...5
    /// The exponent with which disturbances are summed over some 0.3 s, where the worst is what is heard, …
    var shortExponent: Float = 6
    /// … and over all of those.
    var longExponent: Float = 2
}
