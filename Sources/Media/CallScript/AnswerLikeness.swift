internal import AudioKit

/// How like a recording an answer is: of the fifths of a second with sound in either, the share that is in both.
///
/// ``LikenessAnalysis`` looks for each fifth of a second of the recording in the answer, where its gain, its codec, a delay that
/// moves by a tenth of a second, and noise below the speech make little difference. A prompt that was cut off has too few of them,
/// and one that says more has others.
public struct AnswerLikeness: Equatable, Sendable {
    /// Twice the found pieces over the pieces of both: 1 if they are the same, 0 if nothing of the recording was found.
    public let likeness: Double
    /// The share of the recording that was found.
    public let foundShare: Double
    /// Seconds of sound in the answer.
    public let answerSeconds: Double
    /// Seconds of sound in the recording.
    public let recordingSeconds: Double

    /// The part of the recording's beginning that an answer may lack, in milliseconds.
    private static let missingMilliseconds = 3_000
    private static let secondsPerWindow = Double(LikenessAnalysis.windowSamples) / Double(AudioFormat.sampleRate)

    /// Compares, both mono at 48 kHz.
    public init(recording: [Int16], answer: [Int16]) {
        let expected = LikenessAnalysis.speechWindows(recording)
        let heard = LikenessAnalysis.speechWindows(answer).count
        recordingSeconds = Double(expected.count) * Self.secondsPerWindow
        answerSeconds = Double(heard) * Self.secondsPerWindow
        guard let first = expected.first else {
            (likeness, foundShare) = (0, 0)
            return
        }
        // Silence before the answer makes room for a beginning that is missing.
        let room = [Int16](repeating: 0, count: AudioFormat.samples(milliseconds: Self.missingMilliseconds))
        var analysis = LikenessAnalysis()
        analysis.maximumDelayMilliseconds = 2 * Self.missingMilliseconds
        let report = analysis.compare(sent: Array(recording[first...]), received: room + answer)
        let found = Double(report?.foundWindows ?? 0)
        foundShare = found / Double(expected.count)
        likeness = min(1, 2 * found / Double(expected.count + max(heard, 1)))
    }
}
