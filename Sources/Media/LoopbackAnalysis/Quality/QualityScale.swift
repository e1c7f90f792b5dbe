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
