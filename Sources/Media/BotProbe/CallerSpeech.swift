internal import AudioKit

/// What a measuring caller says, at 48 kHz, without silence at its ends.
public struct CallerSpeech: Equatable, Sendable {
    /// What is said in the turns, one after the other and again from the first.
    public let questions: [[Int16]]
    /// What is said into the bot's answers.
    public let interruption: [Int16]

    /// Less is silence at an utterance's ends: −50 dBFS.
    private static let silence: UInt16 = 104

    /// Uses recordings.
    ///
    /// - Returns: Nil if one has no sound, or there is no question.
    public init?(questions: [[Int16]], interruption: [Int16]?) {
        let trimmed = questions.map(Self.trimmed)
        guard !trimmed.isEmpty, trimmed.allSatisfy({ !$0.isEmpty }) else { return nil }
        self.questions = trimmed
        self.interruption = interruption.map(Self.trimmed) ?? Self.spoken(PackageResources.interruption_ulaw)
        guard !self.interruption.isEmpty else { return nil }
    }

    /// Three questions and a request to stop, in English: "What time is it right now?", "Can you tell me a story?", "What can you do
    /// for me?" and "Sorry please stop I have another question" They are synthetic (eSpeak NG 1.51), at 8 kHz.
    public static let builtIn = CallerSpeech(
        builtIn: [
            PackageResources.question_1_ulaw, PackageResources.question_2_ulaw, PackageResources.question_3_ulaw,
        ])

    private init(builtIn: [[UInt8]]) {
        questions = builtIn.map(Self.spoken)
        interruption = Self.spoken(PackageResources.interruption_ulaw)
    }

    private static func trimmed(_ samples: [Int16]) -> [Int16] {
        guard let first = samples.firstIndex(where: { $0.magnitude >= silence }),
            let last = samples.lastIndex(where: { $0.magnitude >= silence })
        else { return [] }
        return Array(samples[first...last])
    }

    private static func spoken(_ bytes: [UInt8]) -> [Int16] {
        let rate = G711.sampleRate
        guard var resampler = Resampler(from: rate, to: AudioFormat.sampleRate) else { return [] }
        let narrow = bytes.map(G711.muLaw.sample) + [Int16](repeating: 0, count: resampler.flushSampleCount)
        var wide = [Int16](repeating: 0, count: narrow.count * AudioFormat.sampleRate / rate)
        var room = wide.mutableSpan
        let made = resampler.process(narrow.span, into: &room).produced
        return trimmed(Array(wide.prefix(made)))
    }
}
