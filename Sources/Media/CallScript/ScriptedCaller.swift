internal import AudioKit

/// A caller that follows a ``CallScript``: takes what is heard frame by frame, and answers with what is sent with each.
///
/// Its clock counts samples at 48 kHz.
public struct ScriptedCaller: Sendable {
    /// What the caller does in a frame.
    public struct Step: Equatable, Sendable {
        /// What it says: as many samples as were heard.
        public var samples: [Int16]
        /// A telephone key that it presses.
        public var key: Character?
        /// The caller hangs up.
        public var isOver = false
        /// Statements that ended, for a person.
        public var notes: [String] = []
    }

    /// How a statement went.
    public struct Result: Equatable, Sendable {
        /// The ways in which one ends.
        public enum Outcome: String, Sendable {
            case passed, failed
            /// An earlier one failed, or the call was never established.
            case skipped
        }

        /// The statement.
        public let statement: CallScript.Statement
        /// How it went.
        public let outcome: Outcome
        /// What was found, or what went wrong.
        public let text: String
        /// When it began, in samples of the call.
        public let start: Int
        /// How long it took, in samples.
        public let length: Int
    }

    private enum Verdict {
        case passed(String)
        case failed(String)
    }

    private let script: CallScript
    private let sounds: [Int: [Int16]]
    private var follower = AnswerFollower()
    private var index = 0
    private var since = 0
    /// Of a sequence of keys: the element, when it began, and whether its key was pressed.
    private var element = (index: 0, since: 0, isDone: false)
    private var said = 0
    private var isOver = false
    /// Why keys cannot be pressed.
    private var keyFault: String?
    /// Results so far, in order.
    private var ended: [Result] = []
    /// What was recorded, by the path of its file, in order.
    public private(set) var recordings: [(path: String, samples: [Int16])] = []
    private var isRecording = false
    /// Of all recordings together.
    private var recordedSamples = 0

    /// The time that a key takes with the pause behind it: 100 and 80 ms, in whole frames.
    private static let keySamples = AudioFormat.samples(milliseconds: 200)
    private static let second = AudioFormat.samples(milliseconds: 1_000)

    /// Makes a caller.
    ///
    /// - Parameter sounds: By line, what is played or said there, and the recordings that answers are compared with.
    public init(_ script: CallScript, sounds: [Int: [Int16]] = [:]) {
        self.script = script
        self.sounds = sounds
    }

    /// All statements with their results; those that were not reached are skipped.
    public var results: [Result] {
        ended
            + script.statements[ended.count...].map {
                Result(statement: $0, outcome: .skipped, text: "was not reached", start: follower.now, length: 0)
            }
    }

    /// Every statement has passed.
    public var isPass: Bool { ended.count == script.statements.count && ended.allSatisfy { $0.outcome == .passed } }

    /// Samples that were looked at.
    package var heardSamples: Int { follower.now }

    /// The call does not take keys.
    public mutating func refuseKeys(_ reason: String) { keyFault = reason }

    /// Takes a frame, and says what is sent after it.
    public mutating func exchange(_ heard: [Int16]) -> Step {
        var step = Step(samples: [Int16](repeating: 0, count: heard.count))
        // A call that continues after its script does not use what it hears.
        guard !isOver, index < script.statements.count || script.endsCall else {
            step.isOver = isOver
            return step
        }
        follower.take(heard)
        if isRecording, recordedSamples + heard.count <= CallScript.longestTime, !recordings.isEmpty {
            recordings[recordings.count - 1].samples += heard
            recordedSamples += heard.count
        }
        let before = ended.count
        while !isOver, index < script.statements.count {
            guard let verdict = run(script.statements[index], &step) else { break }
            settle(verdict)
        }
        if index == script.statements.count, script.endsCall { isOver = true }
        step.isOver = isOver
        step.notes = ended[before...].map { "Line \($0.statement.line): \($0.statement.text): \($0.text)" }
        return step
    }

    /// The call has ended, by the callee or for another reason: what still can be judged is.
    ///
    /// - Parameters:
    ///   - reason: As the end of a sentence: "the callee hung up".
    ///   - isByCallee: Whether a wait for that has its end.
    public mutating func end(_ reason: String, isByCallee: Bool) {
        while !isOver, index < script.statements.count {
            let statement = script.statements[index]
            switch statement.action {
            case .waitForHangUp, .hangUp: settle(isByCallee ? .passed(reason) : .failed(reason))
            case .record(let path): settle(record(path))
            case .expectLength, .expectLike, .expectSilence:
                settle(follower.answer == nil ? .failed("\(reason) before anything was heard") : judge(statement))
            case .pause, .waitForSound, .waitForSilence, .press, .play, .say: settle(.failed(reason))
            }
        }
        isOver = true
    }

    private mutating func settle(_ verdict: Verdict) {
        let (outcome, text): (Result.Outcome, String) =
            switch verdict {
            case .passed(let text): (.passed, text)
            case .failed(let text): (.failed, text)
            }
        ended.append(
            Result(
                statement: script.statements[index], outcome: outcome, text: text, start: since,
                length: follower.now - since))
        if outcome == .failed { isOver = true }
        index += 1
        since = follower.now
        element = (0, since, false)
        said = 0
    }

    // MARK: Statements

    /// - Returns: Nil while the statement is not done.
    private mutating func run(_ statement: CallScript.Statement, _ step: inout Step) -> Verdict? {
        let (now, isLate) = (follower.now, follower.now - since >= statement.limit)
        let limit = Self.text(statement.limit)
        switch statement.action {
        case .pause(let length): return now - since >= length ? .passed("waited") : nil
        case .waitForSound:
            awaitSound(isFirst: now == since)
            if let answer = follower.answer {
                return .passed("sound after \(Self.text(max(0, answer.lowerBound - since)))")
            }
            return isLate ? .failed("nothing was heard within \(limit)") : nil
        case .waitForSilence(let length):
            if follower.quiet >= length {
                follower.isOver = true
                return .passed("silence of \(Self.text(length))")
            }
            return isLate ? .failed("there was no silence of \(Self.text(length)) within \(limit)") : nil
        case .waitForHangUp: return isLate ? .failed("the callee did not hang up within \(limit)") : nil
        case .press(let keys): return press(keys, statement, &step)
        case .play, .say: return speak(sounds[statement.line] ?? [], &step)
        case .expectLength, .expectLike:
            guard follower.answer != nil, follower.quiet >= script.silence else {
                let what = follower.answer == nil ? "nothing was heard" : "the answer had not ended"
                return isLate ? .failed("\(what) within \(limit)") : nil
            }
            return judge(statement)
        case .expectSilence(let length):
            if now == since { follower.begin() }
            return now - since >= length || follower.answer != nil ? judge(statement) : nil
        case .record(let path): return record(path)
        case .hangUp:
            isOver = true
            return .passed("hung up")
        }
    }

    /// A wait for sound after an answer that was heard out is for the next one.
    private mutating func awaitSound(isFirst: Bool) {
        if isFirst, follower.isOver { follower.begin() }
    }

    private mutating func press(_ keys: KeySequence, _ statement: CallScript.Statement, _ step: inout Step) -> Verdict?
    {
        if let keyFault { return .failed("keys cannot be pressed: \(keyFault)") }
        let now = follower.now
        while element.index < keys.elements.count {
            let isFirst = now == element.since
            switch keys.elements[element.index] {
            case .key(let key):
                if !element.isDone {
                    step.key = key
                    follower.begin()
                    element.isDone = true
                }
                guard now - element.since >= Self.keySamples else { return nil }
            case .pause: guard now - element.since >= Self.second else { return nil }
            case .sound, .prompt:
                awaitSound(isFirst: isFirst)
                let isPrompt = keys.elements[element.index] == .prompt
                guard follower.answer != nil, !isPrompt || follower.quiet >= Self.second else {
                    guard now - element.since >= statement.limit else { return nil }
                    let what = follower.answer == nil ? "nothing was heard" : "the prompt had not ended"
                    return .failed("\(what) within \(Self.text(statement.limit))")
                }
                if isPrompt { follower.isOver = true }
            }
            element = (element.index + 1, now, false)
        }
        return .passed("pressed")
    }

    /// Ends with the frame after the last sample.
    private mutating func speak(_ samples: [Int16], _ step: inout Step) -> Verdict? {
        guard said < samples.count else {
            follower.begin()
            return .passed("said")
        }
        let count = min(step.samples.count, samples.count - said)
        step.samples.replaceSubrange(0..<count, with: samples[said..<said + count])
        said += count
        return nil
    }

    private mutating func record(_ path: String?) -> Verdict {
        isRecording = path != nil
        guard let path else { return .passed("recorded") }
        recordings.append((path, []))
        return .passed("recording")
    }

    private mutating func judge(_ statement: CallScript.Statement) -> Verdict {
        let length = follower.answer?.count ?? 0
        switch statement.action {
        case .expectLength(let allowed):
            follower.isOver = true
            let text = "the answer lasted \(Self.text(length))"
            return allowed.contains(length) ? .passed(text) : .failed(text)
        case .expectLike(let path, let least):
            follower.isOver = true
            let found = AnswerLikeness(recording: sounds[statement.line] ?? [], answer: follower.samples)
            let text =
                "likeness \(Self.text(found.likeness)): \(Int((found.foundShare * 100).rounded())) % of the "
                + "\(Self.text(found.recordingSeconds)) s of sound in \(path) was found in "
                + "\(Self.text(found.answerSeconds)) s of the answer"
            return found.likeness >= least ? .passed(text) : .failed(text)
        case .expectSilence(let length):
            guard let answer = follower.answer else { return .passed("silence of \(Self.text(length))") }
            return .failed("there was sound after \(Self.text(max(0, answer.lowerBound - since)))")
        case .pause, .waitForSound, .waitForSilence, .waitForHangUp, .press, .play, .say, .record, .hangUp:
            return .passed("")
        }
    }

    // MARK: Texts

    /// Samples as seconds, to the hundredth.
    private static func text(_ samples: Int) -> String {
        text(Double(samples) / Double(AudioFormat.sampleRate)) + " s"
    }

    private static func text(_ number: Double) -> String {
        let hundredths = Int((number * 100).rounded())
        guard hundredths % 100 != 0 else { return "\(hundredths / 100)" }
        let rest = hundredths % 100
        return "\(hundredths / 100)." + (rest % 10 == 0 ? "\(rest / 10)" : rest < 10 ? "0\(rest)" : "\(rest)")
    }
}
