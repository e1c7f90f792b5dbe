internal import AudioPort
internal import BlockingWork
internal import CallControl
internal import CallParticipation
internal import CallSounds
internal import Core
internal import Synchronization
internal import Voicemail

/// One call in which an owner hears the messages of a mailbox: carries out what its menu orders, on the call's port.
final class MenuRun: CallRun, @unchecked Sendable {
    // Any thread may post; everything else is used by the calls' thread alone, once the run has begun.

    /// What can happen to the call.
    enum Input: Sendable {
        case menu(MailboxMenu.Input)
        /// The call is to end, once what the caller hears now is played.
        case hearOut
        case end
    }

    /// What all menus of a mailbox share.
    struct Shared: Sendable {
        let voice: MenuVoice
        let attempts: PINAttemptsKeeper
        let publish: @Sendable (ParticipantEvent) -> Void
    }

    /// Sound that was sent is on its way, or in the peer's jitter buffer.
    private static let lastWord = Duration.milliseconds(250)

    let call: CallID
    private(set) var isDone = false
    private let plan: VoicemailPlan
    private let menuPlan: MenuPlan
    private let caller: String
    private let shared: Shared
    private let wake: @Sendable () -> Void
    private let inbox = Mutex<[Input]>([])
    private var sound: CallSound
    private var menu: MailboxMenu
    /// Sounds that follow, and the number that the menu has for all of them.
    private var playing: (rest: [MailboxSound], number: Int)?
    /// Of single sounds.
    private var soundNumber = 0
    /// The last change of the mailbox, behind which the next one waits.
    private var change: Task<Void, Never>?
    private var hangsUpAt: Instant?
    /// The end of the call was ordered.
    private var isOver = false

    init(
        _ plan: VoicemailPlan, _ menuPlan: MenuPlan, _ details: ParticipantCall, _ shared: Shared,
        port: consuming AudioPort, wake: @escaping @Sendable () -> Void
    ) {
        call = details.id
        self.plan = plan
        self.menuPlan = menuPlan
        caller = details.caller ?? details.peer.text
        self.shared = shared
        self.wake = wake
        sound = CallSound(port: port)
        menu = MailboxMenu(asksForPIN: menuPlan.pin != nil)
        if !details.isAnswered { shared.publish(.ready(call)) }
    }

    /// Has the calls' thread take an input.
    func post(_ input: Input) {
        inbox.withLock { $0.append(input) }
        wake()
    }

    var nextDeadline: Instant? { [isOver ? nil : menu.nextDeadline, hangsUpAt].compactMap(\.self).min() }

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
        while !isOver, let deadline = menu.nextDeadline, deadline <= now { feed(.timerFired, at: now) }
        guard let time = hangsUpAt, time <= now else { return }
        hangsUpAt = nil
        finish(failure: nil)
    }

    private func take(_ event: CallSound.Event, at now: Instant) {
        switch event {
        case .answered: feed(.begin, at: now)
        case .heard, .speech: break
        case .ended(let number): if number == soundNumber { playNext(at: now) }
        case .failed(let number, let fault):
            warn("a prompt or a message cannot be played: \(fault.message)")
            if number == soundNumber { playNext(at: now) }
        case .playedOut: hangsUpAt = now.advanced(by: Self.lastWord)
        }
    }

    private func take(_ input: Input, at now: Instant) {
        switch input {
        case .menu(let input): feed(input, at: now)
        case .hearOut:
            guard !isOver else { return }
            isOver = true
            sound.playOut()
        case .end:
            isOver = true
            shared.publish(.left(call))
            isDone = true
        }
    }

    /// Ends the call: nothing follows.
    private func finish(failure: String?) {
        isOver = true
        sound.drop()
        shared.publish(.done(call, failure: failure))
    }

    private func warn(_ why: String) { shared.publish(.noted(.warned(why, leftOut: 0), call)) }

    // MARK: Orders of the menu

    private func feed(_ input: MailboxMenu.Input, at now: Instant) {
        guard !isOver else { return }
        var outbox: [MailboxMenu.Output] = []
        menu.handle(input, at: now, into: &outbox)
        for output in outbox { carryOut(output, at: now) }
    }

    private func carryOut(_ output: MailboxMenu.Output, at now: Instant) {
        switch output {
        case .check(let digits): check(digits, at: now)
        case .list: list()
        case .play(let sounds, let number):
            playing = (sounds, number)
            playNext(at: now)
        case .stopSound:
            playing = nil
            soundNumber += 1
            sound.stop()
        case .mark(let id, let isHeard):
            edit("mark") { folder throws(VoicemailError) in try folder.mark(id, isHeard: isHeard) }
        case .delete(let id): edit("delete") { folder throws(VoicemailError) in try folder.delete(id) }
        case .hangUp: hangsUpAt = now.advanced(by: Self.lastWord)
        case .fail(let why): finish(failure: why)
        }
    }

    private func check(_ digits: String, at now: Instant) {
        let isRight = menuPlan.pin == WipedBytes(digits.utf8)
        // A right PIN does not count either once there were too many wrong ones.
        let isAdmitted = shared.attempts.admit(caller, isRight: isRight, at: now)
        if isRight, isAdmitted { return feed(.pinAccepted, at: now) }
        warn(isAdmitted ? "a caller has entered a wrong PIN" : "a caller may try no further PIN for a while")
        feed(.pinRefused(mayRetry: isAdmitted), at: now)
    }

    private func list() {
        let folder = VoicemailFolder(path: plan.folder)
        Task { [weak self, change] in
            await change?.value
            let found = await BlockingThreads.files.run {
                Result { () throws(VoicemailError) in try folder.messages() }
            }
            switch found {
            case .success(let entries):
                let messages = entries.map { MailboxMenu.Message(id: $0.message.id, isHeard: $0.message.isHeard) }
                self?.post(.menu(.listed(messages)))
            case .failure(let error): self?.post(.menu(.listFailed("\(error)")))
            }
        }
    }

    /// Changes the mailbox, in order. The call does not wait for the disk.
    private func edit(
        _ what: String, _ work: @escaping @Sendable (VoicemailFolder) throws(VoicemailError) -> Void
    ) {
        let folder = VoicemailFolder(path: plan.folder)
        let (publish, call) = (shared.publish, call)
        change = Task { [change] in
            await change?.value
            let result = await BlockingThreads.files.run { Result { () throws(VoicemailError) in try work(folder) } }
            guard case .failure(let error) = result else { return }
            publish(.noted(.warned("cannot \(what) a message for its owner: \(error)", leftOut: 0), call))
        }
    }

    // MARK: Sounds

    private func playNext(at now: Instant) {
        guard let (rest, number) = playing else { return }
        guard let next = rest.first else {
            playing = nil
            return feed(.soundEnded(number), at: now)
        }
        playing = (Array(rest.dropFirst()), number)
        soundNumber += 1
        sound.play(source(of: next), number: soundNumber)
    }

    private func source(of next: MailboxSound) -> SoundSource {
        let (voice, menuPlan, plan) = (shared.voice, menuPlan, plan)
        switch next {
        case .prompt(let prompt):
            return SoundSource(on: .programs, wake: wake) { () throws(SoundFault) in
                .file(try voice.open(prompt, menuPlan, withholding: plan.withheldVariables))
            }
        case .message(let id):
            let folder = VoicemailFolder(path: plan.folder)
            return SoundSource(on: .files, wake: wake) { () throws(SoundFault) in
                .file(try SoundFile(path: try Self.file(of: id, in: folder)))
            }
        }
    }

    private static func file(of id: String, in folder: VoicemailFolder) throws(SoundFault) -> String {
        do throws(VoicemailError) { return try folder.message(id).file } catch { throw SoundFault("\(error)") }
    }
}
