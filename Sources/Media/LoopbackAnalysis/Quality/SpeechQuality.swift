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
