import CallSounds
import Testing

@Suite("Trimming of recordings")
struct RecordingTrimTests {
    /// A trimmer at 1,000 samples a second, whose recording begins at 10,000.
    private func trim(_ trims: Bool = true, isSpeaking: Bool = false) -> RecordingTrim {
        RecordingTrim(trims: trims, from: 10_000, rate: 1_000, isSpeaking: isSpeaking)
    }

    /// Samples with their positions in the caller's sound as values.
    private func samples(_ range: Range<Int16>) -> [Int16] { Array(range) }

    @Test("Speech is kept from a quarter of a second before its beginning to a quarter behind its end, with its pauses")
    func keepsSpeech() {
        var trim = trim()
        #expect(trim.take(samples(10_000..<14_000)).isEmpty)
        trim.noteSpeech(isOver: false, at: 13_500)
        var kept = trim.take(samples(14_000..<15_000))
        trim.noteSpeech(isOver: true, at: 14_900)
        kept += trim.take(samples(15_000..<17_000))
        trim.noteSpeech(isOver: false, at: 16_800)
        kept += trim.take(samples(17_000..<18_000))
        trim.noteSpeech(isOver: true, at: 17_900)
        kept += trim.take(samples(18_000..<23_000)) + trim.finish()
        #expect(kept == samples(13_250..<18_150) && trim.hasSpoken)
    }

    @Test("Without speech nothing is kept, and without trimming everything is")
    func extremes() {
        var silent = trim()
        #expect(silent.take(samples(10_000..<20_000)).isEmpty && silent.finish().isEmpty && !silent.hasSpoken)
        var whole = trim(false)
        #expect(whole.take(samples(10_000..<12_000)) == samples(10_000..<12_000) && whole.finish().isEmpty)
    }

    @Test("A caller who speaks at both ends of a recording is kept whole")
    func whole() {
        var trim = trim(isSpeaking: true)
        #expect(trim.take(samples(10_000..<12_000)) + trim.finish() == samples(10_000..<12_000))
    }
}
