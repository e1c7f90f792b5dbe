// Voicemail: the course of a call that leaves a message, what a message is, and what a mailbox has room for. No file and no clock.

public import Core

/// What a caller of a mailbox hears.
public enum VoicemailSound: Equatable, Sendable {
    /// The configured file.
    case greeting
    /// The tone before the recording.
    case beep
}

/// The course of one call that leaves a message: greeting, tone, recording, end.
///
/// The driver asks the mailbox for room, plays, records and answers, and reports what became of it. Every wait has an end but that for a
/// sound, whose length the driver limits, and that for the answer, for which the driver waits with every call.
public struct VoicemailCourse: ProtocolCore, Sendable {
    /// What happened.
    public enum Input: Equatable, Sendable {
        /// The call has come in, or is established already.
        case begin
        /// The mailbox has room for a message, which is kept for this call.
        case admitted
        /// The mailbox takes no message, for the reason in the text.
        case refused(String)
        /// The call is answered: the caller hears what is played.
        case answered
        /// The sound of this number has been played to its end. Ends of stopped sounds are ignored.
        case soundEnded(Int)
        /// The sound of this number cannot be played, for the reason in the text.
        case soundFailed(Int, String)
        /// The caller has pressed a key.
        case key(Character)
        /// The caller has begun to speak, or has ended.
        case speech(isOver: Bool)
        /// The call is being handed over to a person: what the caller does until ``resumed`` does not end the message, except for the key.
        case paused
        /// The caller is back.
        case resumed
        /// The message is saved, or dropped because there was too little in it.
        case saved
        /// The message cannot be written on, for the reason in the text.
        case recordingFailed(String)
        /// ``VoicemailCourse/nextDeadline`` has come.
        case timerFired
    }

    /// What is to be done.
    public enum Output: Equatable, Sendable {
        /// Ask the mailbox for room for one message.
        case admit
        /// Answer the call.
        case answer
        /// Reject the call as busy, for the reason in the text: it is not answered.
        case reject(String)
        /// Play a sound; its number comes back with its end.
        case play(VoicemailSound, number: Int)
        /// Stop the sound that is played.
        case stopSound
        /// The greeting is left out, for the reason in the text.
        case warn(String)
        /// Record the caller from now on.
        case record
        /// End the recording, and keep the message if enough was said.
        case stopRecording
        /// Hang up.
        case hangUp
        /// End the call, which cannot continue: nothing follows. What was recorded is kept.
        case fail(String)
    }

    /// How long a recording continues after the caller's last speech.
    public static let quietTime = Duration.seconds(5)
    /// How long a caller may wait after the tone before the first speech.
    public static let patience = Duration.seconds(10)
    /// A mailbox that has not answered after this time takes no message: its disk hangs.
    public static let admissionTime = Duration.seconds(5)
    /// A message that is not saved after this time has failed.
    public static let savingTime = Duration.seconds(10)
    /// The key that ends the greeting, and then the message.
    public static let finishKey: Character = "#"

    private enum State: Equatable {
        case idle
        case admitting(until: Instant)
        case answering
        case greeting
        case beeping
        case recording(until: Instant, quietUntil: Instant?)
        /// A recording that may last for this time more, while the call is handed over.
        case away(left: Duration)
        /// The tone before the rest of a recording, which may last for this time.
        case beepingAgain(left: Duration)
        case saving(until: Instant)
        case over
    }

    private let hasGreeting: Bool
    private let longest: Duration
    private var isAnswered: Bool
    private var state = State.idle
    private var isSpeaking = false
    private var isAway = false
    /// Of the last sound.
    private var sound = 0

    /// Makes the course of a call.
    ///
    /// - Parameters:
    ///   - hasGreeting: Whether a greeting is played before the tone.
    ///   - longest: The longest recording.
    ///   - isAnswered: Whether the call is answered already, or was placed by this side.
    public init(hasGreeting: Bool, longest: Duration, isAnswered: Bool) {
        self.hasGreeting = hasGreeting
        self.longest = longest
        self.isAnswered = isAnswered
    }

    /// When ``Input/timerFired`` is due; nil if never.
    public var nextDeadline: Instant? {
        switch state {
        case .idle, .answering, .greeting, .beeping, .away, .beepingAgain, .over: nil
        case .admitting(let time), .saving(let time): time
        case .recording(let longest, let quiet): [longest, quiet].compactMap(\.self).min()
        }
    }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .begin: begin(at: now, into: &outbox)
        case .admitted: if case .admitting = state { admit(into: &outbox) }
        case .refused(let why): if case .admitting = state { refuse(why, into: &outbox) }
        case .answered: if state == .answering { greet(into: &outbox) }
        case .soundEnded(let number): if number == sound { endSound(at: now, into: &outbox) }
        case .soundFailed(let number, let why): if number == sound { failSound(why, at: now, into: &outbox) }
        case .key(let key): if key == Self.finishKey { finish(at: now, into: &outbox) }
        case .speech(let isOver): noteSpeech(isOver: isOver, at: now)
        case .paused: pause(at: now)
        case .resumed: resume(into: &outbox)
        case .saved: if case .saving = state { end(.hangUp, into: &outbox) }
        case .recordingFailed(let why): if isRecording { end(.fail(why), into: &outbox) }
        case .timerFired: fire(at: now, into: &outbox)
        }
    }

    private mutating func begin(at now: Instant, into outbox: inout [Output]) {
        guard state == .idle else { return }
        state = .admitting(until: now.advanced(by: Self.admissionTime))
        outbox.append(.admit)
    }

    private mutating func admit(into outbox: inout [Output]) {
        state = .answering
        if !isAnswered { outbox.append(.answer) }
        isAnswered = true
    }

    private mutating func refuse(_ why: String, into outbox: inout [Output]) {
        end(isAnswered ? .fail(why) : .reject(why), into: &outbox)
    }

    private mutating func end(_ output: Output, into outbox: inout [Output]) {
        state = .over
        outbox.append(output)
    }

    // MARK: Sounds

    private mutating func greet(into outbox: inout [Output]) {
        if hasGreeting { play(.greeting, .greeting, into: &outbox) } else { beep(into: &outbox) }
    }

    private mutating func beep(into outbox: inout [Output]) { play(.beep, .beeping, into: &outbox) }

    private mutating func play(_ next: VoicemailSound, _ state: State, into outbox: inout [Output]) {
        self.state = state
        sound += 1
        outbox.append(.play(next, number: sound))
    }

    private mutating func endSound(at now: Instant, into outbox: inout [Output]) {
        switch state {
        case .greeting: beep(into: &outbox)
        case .beeping:
            outbox.append(.record)
            record(for: longest, at: now)
        case .beepingAgain(let left): record(for: left, at: now)
        case .idle, .admitting, .answering, .recording, .away, .saving, .over: return
        }
    }

    /// A message matters more than what is heard before it.
    private mutating func failSound(_ why: String, at now: Instant, into outbox: inout [Output]) {
        switch state {
        case .greeting, .beeping, .beepingAgain:
            outbox.append(.warn(why))
            endSound(at: now, into: &outbox)
        case .idle, .admitting, .answering, .recording, .away, .saving, .over: return
        }
    }

    private mutating func finish(at now: Instant, into outbox: inout [Output]) {
        switch state {
        case .greeting:
            outbox.append(.stopSound)
            beep(into: &outbox)
        case .recording, .away: stopRecording(at: now, into: &outbox)
        case .idle, .admitting, .answering, .beeping, .beepingAgain, .saving, .over: return
        }
    }

    // MARK: The message

    private var isRecording: Bool {
        switch state {
        case .recording, .away, .beepingAgain, .saving: true
        case .idle, .admitting, .answering, .greeting, .beeping, .over: false
        }
    }

    private mutating func record(for time: Duration, at now: Instant) {
        guard !isAway else { return state = .away(left: time) }
        state = .recording(
            until: now.advanced(by: time), quietUntil: isSpeaking ? nil : now.advanced(by: Self.patience))
    }

    // MARK: A call that is handed over meanwhile

    /// Whether what the caller says is not part of the message at present.
    public var isPaused: Bool {
        switch state {
        case .away, .beepingAgain: true
        case .idle, .admitting, .answering, .greeting, .beeping, .recording, .saving, .over: false
        }
    }

    private mutating func pause(at now: Instant) {
        isAway = true
        switch state {
        case .recording(let longest, _): state = .away(left: max(.zero, now.duration(to: longest)))
        case .beepingAgain(let left): state = .away(left: left)
        case .idle, .admitting, .answering, .greeting, .beeping, .away, .saving, .over: return
        }
    }

    /// The caller has heard something else, or a person: the tone announces that it is recorded again.
    private mutating func resume(into outbox: inout [Output]) {
        isAway = false
        guard case .away(let left) = state else { return }
        play(.beep, .beepingAgain(left: left), into: &outbox)
    }

    private mutating func noteSpeech(isOver: Bool, at now: Instant) {
        isSpeaking = !isOver
        guard case .recording(let longest, _) = state else { return }
        state = .recording(until: longest, quietUntil: isOver ? now.advanced(by: Self.quietTime) : nil)
    }

    private mutating func stopRecording(at now: Instant, into outbox: inout [Output]) {
        state = .saving(until: now.advanced(by: Self.savingTime))
        outbox.append(.stopRecording)
    }

    private mutating func fire(at now: Instant, into outbox: inout [Output]) {
        guard let deadline = nextDeadline, deadline <= now else { return }
        switch state {
        case .admitting: refuse("the mailbox's disk did not answer within \(Self.admissionTime.text)", into: &outbox)
        case .recording: stopRecording(at: now, into: &outbox)
        case .saving: end(.fail("the message was not saved within \(Self.savingTime.text)"), into: &outbox)
        case .idle, .answering, .greeting, .beeping, .away, .beepingAgain, .over: return
        }
    }
}
