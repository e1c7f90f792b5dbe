@testable import BotProbe

/// A bot in virtual time whose delays are known to the sample. It gets a frame of the caller and gives the one that is heard with it.
struct ScriptedBot {
    /// Said at the call's beginning.
    var greeting: [Int16] = []
    /// When that begins.
    var greetingStart = 0
    /// For each question, the samples from its end to the answer; those after the last are not answered.
    var responses: [Int] = []
    var answerSamples = 48_000
    /// From the caller's onset to silence, for each interruption; it talks on through those after the last.
    var stops: [Int] = []
    /// Steady noise with this amplitude is added to all.
    var noise = 0
    /// From a key to a sound of 0.2 s; nil for none.
    var keyResponse: Int?

    private(set) var position = 0
    /// Sound to come, and when.
    private var talk: Range<Int>?
    private var lastVoice: Int?
    private var random: UInt64 = 1
    private var answered = 0
    private var interrupted = 0

    /// Less silence is part of what the caller says.
    private static let pause = 9_600

    mutating func press() {
        if let keyResponse { talk = position + keyResponse..<position + keyResponse + 9_600 }
    }

    mutating func exchange(_ said: [Int16]) -> [Int16] {
        var heard: [Int16] = []
        for sample in said {
            if sample != 0 {
                let isOnset = lastVoice.map { position - $0 > Self.pause } ?? true
                if isOnset, let talk, talk.contains(position) {
                    if interrupted < stops.count {
                        self.talk = talk.lowerBound..<min(talk.upperBound, position + stops[interrupted])
                    }
                    interrupted += 1
                }
                lastVoice = position
            } else if let end = lastVoice, position - end == Self.pause, talk.map({ $0.upperBound < position }) ?? true,
                answered < responses.count
            {
                let start = end + 1 + responses[answered]
                precondition(start > position, "a scripted answer must come after the pause")
                talk = start..<start + answerSamples
                answered += 1
            }
            heard.append(sound())
            position += 1
        }
        return heard
    }

    private mutating func sound() -> Int16 {
        random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        let hiss = noise == 0 ? 0 : Int(random >> 33) % (2 * noise + 1) - noise
        let place = position - greetingStart
        if greeting.indices.contains(place) { return Int16(max(-32_768, min(32_767, Int(greeting[place]) + hiss))) }
        guard let talk, talk.contains(position) else { return Int16(hiss) }
        // A square wave of 500 Hz: each of its samples is loud.
        return Int16((position / 48).isMultiple(of: 2) ? 8_000 : -8_000) + Int16(hiss)
    }
}

/// Runs a caller against a bot, frame by frame.
func probe(_ bot: inout ScriptedBot, _ plan: ProbePlan, hangsUpAfterKeys: Int? = nil) -> ProbeRecording {
    var caller = BotProbe(plan, .bursts)
    var said = [Int16](repeating: 0, count: 960)
    var keys = 0
    while true {
        let step = caller.exchange(bot.exchange(said))
        if step.isOver { return caller.recording }
        said = step.samples
        if step.key != nil {
            keys += 1
            bot.press()
            if keys == hangsUpAfterKeys { caller.hangUp() }
        }
    }
}

extension CallerSpeech {
    /// Without silence inside, so that a scripted bot knows where each ends.
    static var bursts: CallerSpeech {
        func burst(_ milliseconds: Int) -> [Int16] {
            (0..<milliseconds * 48).map { ($0 / 60).isMultiple(of: 2) ? 6_000 : -6_000 }
        }
        guard let speech = CallerSpeech(questions: [burst(900), burst(1_207)], interruption: burst(2_000)) else {
            preconditionFailure("bursts have sound")
        }
        return speech
    }
}
