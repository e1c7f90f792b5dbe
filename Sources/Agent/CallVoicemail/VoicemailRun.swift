internal import AudioKit
internal import AudioPort
internal import BlockingWork
internal import CallControl
internal import CallParticipation
internal import CallSounds
internal import Core
internal import Synchronization
internal import Voicemail

/// One call that leaves a message: carries out what its course orders, on the call's port.
final class VoicemailRun: CallRun, @unchecked Sendable {
    // Any thread may post; everything else is used by the calls' thread alone, once the run has begun.

    /// What can happen to the call.
    enum Input: Sendable {
        case course(VoicemailCourse.Input)
        /// The mailbox has room for a message, whose draft this is.
        case admitted(VoicemailDraft)
        /// The call is to end, once what the caller hears now is played.
        case hearOut
        case end
    }

    /// Sound that was sent is on its way, or in the peer's jitter buffer.
    private static let lastWord = Duration.milliseconds(250)

    let call: CallID
    private(set) var isDone = false
    private let plan: VoicemailPlan
    private let keeper: VoicemailKeeper
    private let names: VoicemailNames
    private let message: VoicemailMessage
    private let publish: @Sendable (ParticipantEvent) -> Void
    private let wake: @Sendable () -> Void
    private let inbox = Mutex<[Input]>([])
    private var sound: CallSound
    private var course: VoicemailCourse
    /// Samples of the caller so far.
    private var heard = 0
    private var isSpeaking = false
    /// The room that is kept, until the message has ended.
    private var draft: VoicemailDraft?
    private var trim: RecordingTrim?
    /// The call waits for this participant no more.
    private var isReady: Bool
    private var isHeard = false
    private var hangsUpAt: Instant?
    /// The end of the call was ordered.
    private var isOver = false

    init(
        _ plan: VoicemailPlan, _ keeper: VoicemailKeeper, _ details: ParticipantCall, _ names: VoicemailNames,
        port: consuming AudioPort, publish: @escaping @Sendable (ParticipantEvent) -> Void,
        wake: @escaping @Sendable () -> Void
    ) {
        call = details.id
        self.plan = plan
        self.keeper = keeper
        self.names = names
        self.publish = publish
        self.wake = wake
        sound = CallSound(port: port)
        isReady = details.isAnswered
        message = VoicemailMessage(
            id: names.id, caller: details.caller ?? details.peer.text, name: details.callerName,
            called: details.own?.text, received: names.received)
        course = VoicemailCourse(
            hasGreeting: plan.greeting != nil, longest: plan.bounds.longest, isAnswered: details.isAnswered)
        post(.course(.begin))
    }

    /// Has the calls' thread take an input.
    func post(_ input: Input) {
        inbox.withLock { $0.append(input) }
        wake()
    }

    var nextDeadline: Instant? { [isOver ? nil : course.nextDeadline, hangsUpAt].compactMap(\.self).min() }

    func tick(at now: Instant) {
        var events: [CallSound.Event] = []
        sound.receive(at: now, into: &events)
        for event in events { take(event, at: now) }
        let arrived = inbox.withLock { inbox in
            defer { inbox = [] }
            return inbox
        }
        for input in arrived { take(input, at: now) }
        events = []
        sound.send(at: now, into: &events)
        for event in events { take(event, at: now) }
        while !isOver, let deadline = course.nextDeadline, deadline <= now { feed(.timerFired, at: now) }
        guard let time = hangsUpAt, time <= now else { return }
        hangsUpAt = nil
        finish(failure: nil)
    }

    private func take(_ input: Input, at now: Instant) {
        switch input {
        case .course(let input): feed(input, at: now)
        case .admitted(let new):
            draft = new
            // The caller may be gone, or have waited for too long.
            guard !isOver else { return endMessage() }
            feed(.admitted, at: now)
            if isHeard { feed(.answered, at: now) }
        case .hearOut: hearOut(at: now)
        case .end:
            isOver = true
            endMessage()
            publish(.left(call))
            isDone = true
        }
    }

    private func hearOut(at now: Instant) {
        guard !isOver else { return }
        isOver = true
        endMessage()
        sound.playOut()
    }

    // MARK: Orders of the course

    private func feed(_ input: VoicemailCourse.Input, at now: Instant) {
        guard !isOver else { return }
        var outbox: [VoicemailCourse.Output] = []
        course.handle(input, at: now, into: &outbox)
        for output in outbox { carryOut(output, at: now) }
    }

    private func carryOut(_ output: VoicemailCourse.Output, at now: Instant) {
        switch output {
        case .admit: admit()
        case .answer: answer()
        case .reject(let why):
            isOver = true
            publish(.rejected(call, .busy, why))
        case .play(let next, let number): sound.play(makeSource(next), number: number)
        case .stopSound: sound.stop()
        case .warn(let why): publish(.noted(.warned("the greeting is left out: \(why)", leftOut: 0), call))
        case .record:
            trim = RecordingTrim(trims: true, from: heard, rate: sound.rate, isSpeaking: isSpeaking)
        case .stopRecording: endMessage()
        case .hangUp: hangsUpAt = now.advanced(by: Self.lastWord)
        case .fail(let why): finish(failure: why)
        }
    }

    private func admit() {
        // Once the run has left its call, nothing keeps it, and with it a draft.
        keeper.reserve(plan, names, message, of: call) { [weak self] result in
            switch result {
            case .success(let draft): self?.post(.admitted(draft))
            case .failure(let error): self?.post(.course(.refused("\(error)")))
            }
        } saved: { [weak self] fault in
            self?.post(.course(fault.map { .recordingFailed($0.message) } ?? .saved))
        }
    }

    private func answer() {
        guard !isReady else { return }
        isReady = true
        publish(.ready(call))
    }

    /// Ends the call: nothing follows.
    private func finish(failure: String?) {
        isOver = true
        sound.drop()
        endMessage()
        publish(.done(call, failure: failure))
    }

    // MARK: Sound for the caller

    private func makeSource(_ sound: VoicemailSound) -> SoundSource {
        switch sound {
        case .greeting:
            let file = plan.greeting ?? ""
            return SoundSource(on: .files, wake: wake) { () throws(SoundFault) in .file(try SoundFile(path: file)) }
        case .beep: return SoundSource.beep(wake: wake)
        }
    }

    // MARK: Sound from the caller

    private func take(_ event: CallSound.Event, at now: Instant) {
        switch event {
        case .answered:
            isHeard = true
            feed(.answered, at: now)
        case .heard(let samples):
            heard += samples.count
            record(samples)
        case .speech(let isOver, let place): noteSpeech(isOver: isOver, at: place, now)
        case .ended(let number): feed(.soundEnded(number), at: now)
        case .failed(let number, let fault): feed(.soundFailed(number, fault.message), at: now)
        case .playedOut: hangsUpAt = now.advanced(by: Self.lastWord)
        }
    }

    private func noteSpeech(isOver: Bool, at place: Int, _ now: Instant) {
        isSpeaking = !isOver
        trim?.noteSpeech(isOver: isOver, at: place)
        feed(.speech(isOver: isOver), at: now)
    }

    private func record(_ samples: [Int16]) {
        guard let written = trim?.take(samples), !course.isPaused, !written.isEmpty else { return }
        draft?.append(written)
    }

    /// Ends the message, and gives the room back if there is none.
    private func endMessage() {
        guard let draft else { return }
        self.draft = nil
        let least = Int(VoicemailBounds.leastSpeech.milliseconds) * sound.rate / 1_000
        let isLongEnough = trim.map { $0.spokenSamples(at: heard) >= least } ?? false
        if let rest = trim?.finish() { draft.append(rest) }
        trim = nil
        draft.finish(isKept: isLongEnough)
    }
}
