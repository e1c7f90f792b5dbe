// BotProbe: a caller that measures a voice bot from outside, and the analysis of its recording. Pure: samples in, samples out.

internal import AudioKit

/// A caller that asks a bot, hears it out, interrupts it, presses keys and waits for it to hang up.
///
/// It takes what is heard frame by frame and says what is to be sent with each. It reacts to the bot, so that turns are taken
/// however long answers are. Its clock counts samples; the figures come from ``BotAnalysis``, which has the whole recording.
public struct BotProbe: Sendable {
    /// What the caller does in a frame.
    public struct Step: Equatable, Sendable {
        /// What it says: as many samples as were heard.
        public var samples: [Int16]
        /// A telephone key that it presses.
        public var key: Character?
        /// The caller hangs up.
        public var isOver: Bool
    }

    private enum Phase: Sendable {
        /// The bot may say something first.
        case greeting
        case speaking(ProbeRecording.Purpose, [Int16], said: Int)
        /// Nothing was heard since the caller spoke, or pressed a key.
        case waiting(since: Int)
        /// The bot talks.
        case answer(since: Int)
        /// The bot is to hang up.
        case leaving(since: Int)
        case over
    }

    private let plan: ProbePlan
    private let speech: CallerSpeech
    /// What was said and heard so far.
    public private(set) var recording = ProbeRecording()
    private var phase = Phase.greeting
    private var levels = SoundLevels()
    private var judgedBlocks = 0
    /// Where the newest sound ended, and how many blocks of sound came since the caller last began to wait.
    private var soundEnd: Int?
    private var soundBlocks = 0
    private var turnsTaken = 0
    private var questionsAsked = 0
    private var interruptionsMade = 0
    private var interruptionTries = 0
    /// The answer to come is to be interrupted.
    private var willInterrupt = false
    private var keysLeft: Substring
    private var sendingDelay = 0

    /// Makes a caller.
    public init(_ plan: ProbePlan, _ speech: CallerSpeech) {
        self.plan = plan
        self.speech = speech
        keysLeft = plan.keys[...]
    }

    /// How many samples later than the frame with which it is given the caller's speech leaves.
    public mutating func setSendingDelay(_ samples: Int) { sendingDelay = samples }

    /// The program that drives this was late: what happened about now is not measured.
    public mutating func noteSlip() { recording.slips.append(now) }

    /// The bot has hung up.
    public mutating func hangUp() {
        if recording.hungUp == nil { recording.hungUp = now }
        phase = .over
    }

    /// Samples so far.
    private var now: Int { recording.heard.count }

    /// Takes a frame, and says what is sent after it.
    public mutating func exchange(_ heard: [Int16]) -> Step {
        recording.heard += heard
        levels.append(heard)
        judgeBlocks()
        var step = Step(samples: [Int16](repeating: 0, count: heard.count), key: nil, isOver: false)
        switch phase {
        case .greeting: greet(&step)
        case .speaking(let purpose, let samples, let said): speak(purpose, samples, from: said, &step)
        case .waiting(let since):
            if soundBlocks >= SoundPiece.leastBlocks {
                phase = .answer(since: now)
            } else if now - since >= plan.patience {
                proceed(&step)
            }
        case .answer(let since): hearOut(since: since, &step)
        case .leaving(let since): if now - since >= plan.patience { phase = .over }
        case .over: break
        }
        if now >= plan.longestCall { phase = .over }
        if case .over = phase { step.isOver = true }
        return step
    }

    private mutating func judgeBlocks() {
        while judgedBlocks < levels.levels.count {
            if levels.isSound(judgedBlocks) {
                soundBlocks += 1
                soundEnd = (judgedBlocks + 1) * SoundLevels.blockSamples
            }
            judgedBlocks += 1
        }
    }

    private var quiet: Int { now - (soundEnd ?? 0) }

    private mutating func greet(_ step: inout Step) {
        if soundEnd == nil {
            if now >= plan.greetingWait { proceed(&step) }
        } else if quiet >= plan.pause || now >= plan.longestAnswer {
            proceed(&step)
        }
    }

    private mutating func hearOut(since: Int, _ step: inout Step) {
        if willInterrupt, now - since >= plan.interruptAfter, quiet < SoundLevels.blockSamples * 5 {
            willInterrupt = false
            interruptionsMade += 1
            interruptionTries = 0
            speak(.interruption, speech.interruption, from: 0, &step)
        } else if quiet >= plan.pause || now - since >= plan.longestAnswer {
            proceed(&step)
        }
    }

    /// Begins the next thing.
    private mutating func proceed(_ step: inout Step) {
        if turnsTaken < plan.turns {
            turnsTaken += 1
            ask(&step)
        } else if interruptionsMade < plan.interruptions, interruptionTries < plan.triesPerInterruption {
            interruptionTries += 1
            willInterrupt = true
            ask(&step)
        } else if let key = keysLeft.popFirst() {
            willInterrupt = false
            recording.presses.append(ProbeRecording.KeyPress(key: key, position: now))
            step.key = key
            soundBlocks = 0
            phase = .waiting(since: now)
        } else if plan.expectsHangUp {
            recording.hangUpAwaited = now
            phase = .leaving(since: now)
        } else {
            phase = .over
        }
    }

    private mutating func ask(_ step: inout Step) {
        let question = speech.questions[questionsAsked % speech.questions.count]
        questionsAsked += 1
        speak(.question, question, from: 0, &step)
    }

    private mutating func speak(
        _ purpose: ProbeRecording.Purpose, _ samples: [Int16], from said: Int, _ step: inout Step
    ) {
        if said == 0 {
            let start = now + sendingDelay
            recording.utterances.append(
                ProbeRecording.Utterance(purpose: purpose, range: start..<start + samples.count))
        }
        let count = min(step.samples.count, samples.count - said)
        step.samples.replaceSubrange(0..<count, with: samples[said..<said + count])
        guard said + count == samples.count else {
            phase = .speaking(purpose, samples, said: said + count)
            return
        }
        // What a bot says that does not stop counts as its answer.
        soundBlocks = 0
        phase = .waiting(since: now)
    }
}

/// How a caller measures a bot. Times are samples at 48 kHz.
public struct ProbePlan: Equatable, Sendable {
    /// How often the caller asks and hears the answer out.
    public var turns = 5
    /// How often it talks into an answer.
    public var interruptions = 3
    /// Telephone keys that are pressed after that, one after the other.
    public var keys = ""
    /// At last the caller waits for the bot to hang up.
    public var expectsHangUp = false
    /// The silence that ends what a bot says, in samples.
    public var pause = AudioFormat.samples(milliseconds: 1_500)
    /// How long the caller waits for a sound of the bot.
    public var patience = AudioFormat.samples(milliseconds: 10_000)
    /// How long it waits for a greeting.
    public var greetingWait = AudioFormat.samples(milliseconds: 4_000)
    /// How long it listens to an answer, or a greeting, that does not end.
    public var longestAnswer = AudioFormat.samples(milliseconds: 30_000)
    /// How long a bot has talked when it is interrupted.
    public var interruptAfter = AudioFormat.samples(milliseconds: 1_000)
    /// How often the caller asks for an answer that is long enough to be interrupted.
    public var triesPerInterruption = 3
    /// The longest call.
    public var longestCall = AudioFormat.samples(milliseconds: 600_000)

    /// Makes the usual plan.
    public init() {}
}

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
