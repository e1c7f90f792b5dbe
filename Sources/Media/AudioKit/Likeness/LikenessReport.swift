/// How like what was sent the sound is that came back.
public struct LikenessReport: Equatable, Sendable {
    /// Time from a sound in what was sent to the same sound in what came back: the median over the windows that were
    /// found again. `nil` if too few were.
    public var delayMilliseconds: Double?
    /// Median over all speech windows of the best normalised cross-correlation, 0…1.
    public var likeness: Double
    /// A tenth of the windows is less like than this.
    public var tenthPercentile: Double
    /// Windows of what was sent that hold speech and were compared.
    public var speechWindows: Int
    /// Of these, windows with a likeness of at least ``foundLikeness``.
    public var foundWindows: Int
    /// Windows with speech whose position is after the end of the recording. They are not compared.
    public var unheardWindows: Int

    /// The least likeness of a window that counts as found.
    public static let foundLikeness = 0.5
}
