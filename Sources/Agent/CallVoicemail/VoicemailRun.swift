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
    private var port: AudioPort
    private var course: VoicemailCourse
    /// The sound that is put into the port, with its number in the course.
    private var source: (sound: SoundSource, number: Int)?
    /// Sounds whose end the port is to report, in order; nil for that of the call's last words.
    private var ends: [Int?] = []
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
        self.port = port
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
        hear(at: now)
        updatePort(at: now)
        let arrived = inbox.withLock { inbox in
            defer { inbox = [] }
            return inbox
        }
        for input in arrived { take(input, at: now) }
        playSound(at: now)
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
        source = nil
        port.end()
        ends.append(nil)
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
        case .play(let sound, let number): source = (makeSource(sound), number)
        case .stopSound:
            source = nil
            port.clear()
        case .warn(let why): publish(.noted(.warned("the greeting is left out: \(why)", leftOut: 0), call))
        case .record:
            trim = RecordingTrim(trims: true, from: heard, rate: port.rate.rawValue, isSpeaking: isSpeaking)
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
        source = nil
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

    private func playSound(at now: Instant) {
        guard let (sound, number) = source else { return }
        switch sound.write(into: &port, at: now) {
        case .continuing: return
        case .ended:
            source = nil
            ends.append(number)
            port.end()
        case .failed(let fault):
            source = nil
            feed(.soundFailed(number, fault.message), at: now)
        }
    }

    private func updatePort(at now: Instant) {
        var events: [PlaybackEvent] = []
        port.update(at: now, isFinal: source == nil, into: &events)
        for event in events {
            guard case .ended = event, !ends.isEmpty else { continue }
            if let number = ends.removeFirst() {
                feed(.soundEnded(number), at: now)
            } else {
                hangsUpAt = now.advanced(by: Self.lastWord)
            }
        }
    }

    // MARK: Sound from the caller

    private func hear(at now: Instant) {
        var samples: [Int16] = []
        port.read(into: &samples)
        if !samples.isEmpty, !isHeard {
            isHeard = true
            feed(.answered, at: now)
        }
        heard += samples.count
        record(samples)
        var turns: [TurnEvent] = []
        port.takeTurns(into: &turns)
        for turn in turns {
            switch turn {
            case .speechBegan(let place): noteSpeech(isOver: false, at: place - port.start, now)
            case .speechEnded(let place): noteSpeech(isOver: true, at: place - port.start, now)
            case .lowered, .restored, .answered: continue
            }
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
        let least = Int(VoicemailBounds.leastSpeech.milliseconds) * port.rate.rawValue / 1_000
        let isLongEnough = trim.map { $0.spokenSamples(at: heard) >= least } ?? false
        if let rest = trim?.finish() { draft.append(rest) }
        trim = nil
        draft.finish(isKept: isLongEnough)
    }
}
