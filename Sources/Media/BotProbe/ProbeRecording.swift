/// What a measuring caller said and heard. All positions are samples at 48 kHz since the call stood, at the caller's ear.
public struct ProbeRecording: Equatable, Sendable {
    /// Why something was said.
    public enum Purpose: Equatable, Sendable {
        /// To be answered.
        case question
        /// To interrupt the bot.
        case interruption
    }

    /// Something that the caller said.
    public struct Utterance: Equatable, Sendable {
        /// Why.
        public let purpose: Purpose
        /// From its first sound to its last.
        public let range: Range<Int>
    }

    /// A telephone key that the caller pressed.
    public struct KeyPress: Equatable, Sendable {
        /// Which.
        public let key: Character
        /// When.
        public let position: Int
    }

    /// All that was heard.
    public internal(set) var heard: [Int16] = []
    /// What was said, in order.
    public internal(set) var utterances: [Utterance] = []
    /// Keys that were pressed, in order.
    public internal(set) var presses: [KeyPress] = []
    /// When the caller began to wait for the bot's hang-up; nil if it did not.
    public internal(set) var hangUpAwaited: Int?
    /// When the bot hung up; nil if it did not.
    public internal(set) var hungUp: Int?
    /// Moments at which the measuring program was late, so that times around them are not known.
    public internal(set) var slips: [Int] = []

    /// Nothing yet.
    public init() {}
}
