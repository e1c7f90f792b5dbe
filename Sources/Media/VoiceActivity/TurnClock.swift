/// A caller's turn that was answered.
@frozen
public struct AnsweredTurn: Equatable, Sendable, BitwiseCopyable {
    /// Samples received before the end of the caller's speech.
    public let speechEnd: Int
    /// The first sound of the answer, on the same clock.
    public let answer: Int
    /// Samples from the end of speech, at the caller's mouth, to the first sound at the caller's ear: with the path both ways.
    public let response: Int

    @_noAllocation @_noLocks
    init(speechEnd: Int, answer: Int, response: Int) {
        self.speechEnd = speechEnd
        self.answer = answer
        self.response = response
    }

    /// The turn on a clock that began `samples` samples earlier.
    @_noAllocation @_noLocks
    package func moved(by samples: Int) -> AnsweredTurn {
        AnsweredTurn(speechEnd: speechEnd &+ samples, answer: answer &+ samples, response: response)
    }

    /// The turn at another rate.
    public func divided(by ratio: Int) -> AnsweredTurn {
        AnsweredTurn(speechEnd: speechEnd / ratio, answer: answer / ratio, response: response / ratio)
    }
}

/// Measures, for each turn of a call, the time from the end of the caller's speech to the first sound of the answer.
///
/// The clock counts received samples. Sound that is sent with a received frame is heard after it. The end of speech is
/// known some 0.3 s later; an answer that comes earlier is measured all the same.
public struct TurnClock: Equatable, Sendable {
    /// Less is silence: −60 dBFS.
    private static var silence: UInt16 { @_noAllocation @_noLocks get { 33 } }
    /// What the bot says after this much silence is something new.
    private static var pauseMilliseconds: Int { @_noAllocation @_noLocks get { 200 } }

    private let pause: Int
    /// Samples from the caller's mouth to here and from here to the caller's ear.
    private var pathDelay = 0
    /// The end of speech that has no answer yet.
    private var unanswered: Int?
    /// Where the bot's latest sound began, and the sample after its last.
    private var soundStart = Int.min / 2
    private var soundEnd = Int.min / 2

    /// The response times of the call.
    public private(set) var times: ResponseTimes
    /// Turns in which the bot spoke when the caller's speech ended.
    public private(set) var overlaps = 0
    /// Turns that the caller continued before an answer came.
    public private(set) var unansweredTurns = 0

    /// - Parameter rateHz: Samples a second, 8,000…48,000.
    @_noAllocation @_noLocks
    public init(rateHz: Int) {
        pause = rateHz &* Self.pauseMilliseconds / 1_000
        times = ResponseTimes(rateHz: rateHz)
    }

    /// Whether the bot was heard within the last 0.2 s.
    @_noAllocation @_noLocks
    func isSounding(at now: Int) -> Bool { now &- soundEnd < pause }

    /// Whether the first `count` samples of a frame have sound.
    @_noAllocation @_noLocks
    static func isAudible(_ samples: borrowing MutableSpan<Int16>, _ count: Int) -> Bool {
        for index in 0..<count where samples[index].magnitude >= silence { return true }
        return false
    }

    /// What the path takes, both ways, as far as it is known: the round trip and both jitter buffers.
    @_noAllocation @_noLocks
    public mutating func setPathDelay(samples: Int) { pathDelay = max(0, samples) }

    /// Takes the events of a received frame. Returns a turn that turns out to be answered already.
    @_noAllocation @_noLocks
    public mutating func follow(_ events: VoiceEvents) -> AnsweredTurn? {
        var turn: AnsweredTurn?
        for index in 0..<events.count {
            let event = events[index]
            switch event.kind {
            case .onset, .retracted: break
            case .confirmed:
                if unanswered != nil { unansweredTurns &+= 1 }
                unanswered = nil
            case .ended: turn = end(event.position) ?? turn
            }
        }
        return turn
    }

    /// Takes a sample as it is sent, with its level, at position `now` of the clock: for the first sample that is sent with a
    /// received frame, the samples received with that frame. Returns a turn whose answer begins with it.
    @_noAllocation @_noLocks
    public mutating func send(_ sample: Int16, now: Int) -> AnsweredTurn? {
        guard sample.magnitude >= Self.silence else { return nil }
        let isNew = now &- soundEnd >= pause
        soundEnd = now &+ 1
        guard isNew else { return nil }
        soundStart = now
        guard let end = unanswered else { return nil }
        return answer(end)
    }

    @_noAllocation @_noLocks
    private mutating func end(_ position: Int) -> AnsweredTurn? {
        if soundStart >= position { return answer(position) }
        if soundEnd > position { overlaps &+= 1 } else { unanswered = position }
        return nil
    }

    @_noAllocation @_noLocks
    private mutating func answer(_ end: Int) -> AnsweredTurn {
        unanswered = nil
        let turn = AnsweredTurn(speechEnd: end, answer: soundStart, response: soundStart &- end &+ pathDelay)
        times.add(turn.response)
        return turn
    }
}
