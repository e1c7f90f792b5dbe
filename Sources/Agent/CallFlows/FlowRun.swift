internal import AudioKit
internal import AudioPort
internal import BlockingWork
internal import BotWire
internal import CallControl
internal import CallFlow
internal import CallParticipation
internal import CallSounds
internal import Core
internal import Synchronization

/// One call in a flow: carries out what its course orders, on the call's port.
final class FlowRun: CallRun, @unchecked Sendable {
    // Any thread may post; everything else is used by the flows' thread alone, once the run has begun.

    /// What can happen to the call.
    enum Input: Sendable {
        case course(FlowCourse.Input)
        /// The document of this number was read, or not.
        case loaded(Result<FlowDocument, FlowUnusable>, Int)
        /// A call with this `CallSid` takes the caller from its queue, after a document of that call's flow.
        case called(by: String, FlowWhisper?, FlowOrigin?, attempt: Int)
        /// The sound of this number, which a server has, is there.
        case got(Result<FlowSoundFile, FlowUnusable>, Int)
        /// The recording is at this path; nil if it was dropped.
        case kept(String?)
        /// Something about the bot that takes part, or its end.
        case bot(CallStreamReport, sid: String)
        /// The same of the fork of this number.
        case fork(CallStreamReport, Int)
        /// How the call has ended; its end follows.
        case callEnded(TwilioWebhook.Status)
        /// The call is to end, once what the caller hears now is played.
        case hearOut
        case end
    }

    /// Sound that was sent is on its way, or in the peer's jitter buffer.
    private static let lastWord = Duration.milliseconds(250)
    /// A key that a bot is notified of; how long it was held is not known here.
    private static let keyTime = Duration.milliseconds(100)

    let call: CallID
    private let details: ParticipantCall
    private let streams: FlowStreams
    /// What connects the call, once it has had a stream.
    private var lease: FlowStreams.Lease?
    /// The bot that takes part.
    private var bot: ConnectedBot?
    /// Forks of the call's sound, by their numbers, and what they get.
    private var forks: [Int: any CallFork] = [:]
    private var forked: ForkedSound?
    private(set) var isDone = false
    private let plan: FlowPlan
    let origin: FlowOrigin
    /// Of the call that takes this one from its queue, whose document the caller goes through.
    private var guest: FlowOrigin?
    private let voice: FlowVoice
    private let names: FlowCallNames
    private let publish: @Sendable (ParticipantEvent) -> Void
    private let order: @Sendable (FlowOrder) -> Void
    private let wake: @Sendable () -> Void
    private let inbox = Mutex<[Input]>([])
    /// Where the call was, and how long its recording is, if the caller has hung up while that was made.
    private let hungUp = Mutex<(course: FlowCourse, time: Duration)?>(nil)
    private var port: AudioPort
    private var course: FlowCourse
    /// The sound that is put into the port, with its number in the course.
    private var source: (sound: SoundSource, number: Int)?
    /// Sounds whose end the port is to report, in order; nil for that of the call's last words.
    private var ends: [Int?] = []
    /// The sound that is to be got from a server.
    private var awaited: Int?
    /// The call for the server.
    private let wire: FlowWireCall
    /// Whether reports of its status are made.
    private let isReported: Bool
    private var reports = 0
    private var answeredAt: Instant?
    /// Samples of the caller so far, at the port's rate.
    private var heard = 0
    private var isSpeaking = false
    private var recording: (file: CallRecording, trim: RecordingTrim)?
    private var recordings = 0
    /// Of the last recording.
    private var recordedSamples = 0
    /// The call waits for this participant no more.
    private var isReady: Bool
    /// The caller was heard, so that the call's media runs.
    private var isHeard = false
    private var hangsUpAt: Instant?
    /// Something was dialled whose end has not been reported.
    private var isDialling = false
    /// The newest one to take the caller from its queue.
    private var attempt = 0
    /// The caller was put into a queue whose end has not been reported.
    private var isQueued = false
    /// The call itself has ended.
    private var isHungUp = false
    /// Documents that were ordered.
    private var documents = 0
    /// The values of documents as the call has begun.
    let values: FlowValues
    /// The end of the call was ordered.
    private var isOver = false

    init(
        _ plan: FlowPlan, _ origin: FlowOrigin, _ voice: FlowVoice, _ details: ParticipantCall, _ names: FlowCallNames,
        _ streams: FlowStreams, asked: AskedCallee?, port: consuming AudioPort,
        publish: @escaping @Sendable (ParticipantEvent) -> Void,
        order: @escaping @Sendable (FlowOrder) -> Void,
        wake: @escaping @Sendable () -> Void
    ) {
        call = details.id
        self.details = details
        self.streams = streams
        self.plan = plan
        self.origin = origin
        self.voice = voice
        self.names = names
        self.publish = publish
        self.order = order
        self.wake = wake
        self.port = port
        isReady = details.isAnswered
        let own = details.own?.text ?? ""
        let (from, to) = details.isOutgoing ? (own, details.peer.text) : (details.peer.text, own)
        var values = asked?.values ?? FlowValues(from: from, to: to, callSid: names.callSid)
        // A callee that is asked is a call of its own, by the caller.
        (values.to, values.callSid) = (to, names.callSid)
        self.values = values
        wire = FlowWireCall(values, isOutgoing: details.isOutgoing, parent: asked?.values.callSid)
        isReported = asked == nil
        course = origin.course(values, asked: asked?.document)
        post(.course(.begin))
        report(.initiated)
    }

    /// Has the flows' thread take an input.
    func post(_ input: Input) {
        inbox.withLock { $0.append(input) }
        wake()
    }

    /// When ``tick(at:)`` is due without anything happening; nil if never.
    var nextDeadline: Instant? { [isOver ? nil : course.nextDeadline, hangsUpAt].compactMap(\.self).min() }

    /// Does what is due: takes inputs and the caller's sound, and moves the flow's sound.
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
        case .course(let input):
            if case .dialEnded = input { isDialling = false }
            if case .queueEnded = input { isQueued = false }
            if case .key(let key) = input, bot != nil {
                lease?.service.sendDigit(key, heldFor: Self.keyTime, to: call)
            }
            if input.endsWhisper { receive(nil) }
            feed(input, at: now)
        case .loaded(let result, let number):
            guard number == documents else { return }
            switch result {
            case .success(let document): feed(.fetched(document), at: now)
            case .failure(let fault): feed(.fetchFailed(fault), at: now)
            }
        case .called(let sid, let whisper, let origin, let attempt):
            guard !isOver else { return }
            self.attempt = attempt
            receive(origin)
            feed(.dequeued(by: sid, whisper), at: now)
        case .got(let sound, let number): take(sound, number, at: now)
        case .kept(let path):
            let kept = path.map { FlowRecording(url: FlowOrigin.url(ofFile: $0), duration: recordedTime) }
            feed(.recorded(kept), at: now)
        case .bot(let report, let sid): take(report, ofBot: sid, at: now)
        case .fork(let report, let number): take(report, ofFork: number, at: now)
        case .callEnded(let status):
            let time = answeredAt?.duration(to: now).components.seconds ?? 0
            report(status, seconds: Int(time))
            isHungUp = true
        case .hearOut: hearOut(at: now)
        case .end:
            let isCut = !isOver
            isOver = true
            if isCut, isHungUp { reportQueue(at: now) }
            stopDialling()
            endStreams()
            receive(nil)
            endRecording(isHungUp: isCut)
            if !isDone {
                origin.leave()
                lease?.leave()
            }
            publish(.left(call))
            isDone = true
        }
    }

    private func hearOut(at now: Instant) {
        guard !isOver else { return }
        isOver = true
        stopDialling()
        endStreams()
        endRecording()
        source = nil
        awaited = nil
        port.end()
        ends.append(nil)
    }

    private func stopDialling() {
        if isDialling { order(.stopDialling(call, isTimeout: false)) }
        isDialling = false
        if isQueued { order(.leaveQueue(call, .hangup)) }
        isQueued = false
    }

    /// Documents are of another call's flow from now on, or of this one's again.
    private func receive(_ guest: FlowOrigin?) {
        guest?.enter()
        self.guest?.leave()
        self.guest = guest
    }

    /// The server learns of a caller that has hung up in a queue, or while it was joined to the call that took it.
    private func reportQueue(at now: Instant) {
        guard isQueued, case .server(let link) = origin, let last = course.lastRequest(ofQueueAt: now) else { return }
        link.enter()
        Task { [wire] in
            _ = await link.page(last.request, number: last.number, for: wire)
            link.leave()
        }
    }

    // MARK: Orders of the course

    private func feed(_ input: FlowCourse.Input, at now: Instant) {
        guard !isOver else { return }
        var outbox: [FlowCourse.Output] = []
        course.handle(input, at: now, into: &outbox)
        for output in outbox { carryOut(output, at: now) }
    }

    private func carryOut(_ output: FlowCourse.Output, at now: Instant) {
        switch output {
        case .reached(let place): publish(.noted(.reached("\(place)"), call))
        case .fetch(let name): fetch(name)
        case .request(let request, let number): ask(request, number)
        case .fellBack(let failure): publish(.noted(.fellBack(failure.description), call))
        case .answer: answer()
        case .reject(let how):
            // A call that is answered already, by another policy or because it was placed, can only end.
            if isReady { return finish(failure: nil) }
            isOver = true
            publish(.rejected(call, how == .busy ? .busy : .declined, nil))
        case .play(let sound, let number): play(sound, number)
        case .stopSound:
            source = nil
            awaited = nil
            port.clear()
            forked?.clear()
        case .openStream(let order): connect(order)
        case .fork(let order, let number): fork(order, number)
        case .endFork(let number):
            forks.removeValue(forKey: number)?.end()
            if forks.isEmpty { forked = nil }
        case .record(let trims): beginRecording(trims: trims)
        case .stopRecording: endRecording()
        case .dial(let what):
            isDialling = true
            order(.dial(call, what))
        case .connect: order(.connect(call))
        case .stopDialling(let isTimeout): order(.stopDialling(call, isTimeout: isTimeout))
        case .accept: order(.accepted(call))
        case .enqueue(let queue, let hasMusic):
            isQueued = true
            order(.enqueue(call, queue, hasMusic: hasMusic))
        case .leaveQueue(let result): order(.leaveQueue(call, result))
        case .readyToJoin: order(.readyToJoin(call, attempt: attempt))
        case .fault(let failure): publish(.noted(.warned(failure.description, leftOut: 0), call))
        case .hangUp: hangsUpAt = now.advanced(by: Self.lastWord)
        case .fail(let failure): finish(failure: failure.description)
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
        awaited = nil
        stopDialling()
        endStreams()
        endRecording()
        if let failure, !isReady { publish(.failed(call, failure)) } else { publish(.done(call, failure: failure)) }
    }

    private func report(_ status: TwilioWebhook.Status, seconds: Int? = nil) {
        guard isReported, case .server(let link) = origin else { return }
        link.report(status, number: reports, seconds: seconds, of: wire, call)
        reports += 1
    }

    private func ask(_ request: FlowRequest, _ number: Int) {
        documents += 1
        guard case .server(let link) = guest ?? origin else { return }
        Task { [self] in
            switch await link.page(request, number: number, for: wire) {
            case .success(let page): post(.course(.received(page, number: number)))
            case .failure(let fault): post(.course(.requestFailed(fault, number: number)))
            }
        }
    }

    private func fetch(_ name: FlowFileName) {
        documents += 1
        guard case .folder(let folder) = guest ?? origin else { return }
        Task { [self, number = documents] in
            let result = await BlockingThreads.files.run { folder.load(name) }
            post(.loaded(result, number))
        }
    }

    // MARK: Streams

    private func connect(_ order: FlowStreamOrder) {
        let stream = stream(order)
        let sid = stream.streamSid
        guard let service = service() else {
            return post(.course(.streamEnded(FlowStreamEnd(sid: sid, failure: FlowStreams.missing))))
        }
        do {
            let line = try service.connect(details, to: stream) { [self] in post(.bot($0, sid: sid)) }
            bot = ConnectedBot(sid: sid, line: line, hearing: port.rate)
        } catch {
            post(.course(.streamEnded(FlowStreamEnd(sid: sid, failure: "\(error)"))))
        }
    }

    private func take(_ report: CallStreamReport, ofBot sid: String, at now: Instant) {
        switch report {
        case .noted(let notice): publish(.noted(notice, call))
        case .ended(let failure):
            guard bot?.sid == sid else { return }
            bot?.finish()
            bot = nil
            feed(.streamEnded(FlowStreamEnd(sid: sid, failure: failure)), at: now)
        }
    }

    private func service() -> (any CallStreams)? {
        lease = lease ?? streams.lease()
        return lease?.service
    }

    private func fork(_ order: FlowStreamOrder, _ number: Int) {
        guard let service = service() else {
            return post(.fork(.ended(failure: FlowStreams.missing), number))
        }
        let fork = service.fork(details, to: stream(order), order.tracks) { [self] in post(.fork($0, number)) }
        forks[number] = fork
        if forked == nil { forked = ForkedSound(hearing: port.rate, at: fork.rate) }
    }

    private func take(_ report: CallStreamReport, ofFork number: Int, at now: Instant) {
        switch report {
        case .noted(let notice): publish(.noted(notice, call))
        case .ended(let failure):
            forks[number] = nil
            if forks.isEmpty { forked = nil }
            if let failure, !isOver {
                publish(.noted(.warned("a stream of Start has ended: \(failure)", leftOut: 0), call))
            }
            feed(.forkEnded(number), at: now)
        }
    }

    private func stream(_ order: FlowStreamOrder) -> CallStream {
        var generator = SystemRandomNumberGenerator()
        let random = (0..<WireName.randomBytes).map { _ in UInt8.random(in: 0...255, using: &generator) }
        return CallStream(
            to: order.address, parameters: order.parameters, callSid: names.callSid,
            streamSid: WireName.sid("MZ", random))
    }

    /// Gives bots and servers what was heard.
    private func stream(_ samples: [Int16], at now: Instant) {
        guard !samples.isEmpty else { return }
        if bot != nil {
            let written = bot?.take(samples, into: &port, at: now) ?? []
            forked?.wrote(written)
        }
        guard let (inbound, outbound) = forked?.take(samples, isSuspended: port.isSuspended) else { return }
        for fork in forks.values { fork.give(inbound: inbound, outbound: outbound) }
    }

    private func endStreams() {
        if bot != nil {
            bot?.finish()
            bot = nil
            lease?.service.disconnect(call)
        }
        for fork in forks.values { fork.end() }
        forks = [:]
        forked = nil
    }

    // MARK: Sound for the caller

    private func play(_ sound: FlowSound, _ number: Int) {
        switch sound {
        case .url(let address):
            guard case .server(let link) = guest ?? origin else { return }
            awaited = number
            Task { [self] in post(.got(await link.sound(at: address, for: wire), number)) }
        case .file, .speech, .beep, .ringBack: source = makeSource(sound).map { ($0, number) }
        }
    }

    private func take(_ sound: Result<FlowSoundFile, FlowUnusable>, _ number: Int, at now: Instant) {
        guard awaited == number else { return }
        awaited = nil
        switch sound {
        case .success(let file):
            let opened = SoundSource(on: .files, wake: wake) { () throws(SoundFault) in
                .file(try SoundFile(path: file.path))
            }
            source = (opened, number)
        case .failure(let fault): feed(.soundFailed(number, fault.message), at: now)
        }
    }

    private func makeSource(_ sound: FlowSound) -> SoundSource? {
        let (voice, plan) = (voice, plan)
        switch sound {
        case .url: return nil
        case .file(let name):
            guard case .folder(let folder) = guest ?? origin else { return nil }
            return SoundSource(on: .files, wake: wake) { () throws(SoundFault) in
                let path = try SoundFault.reporting { () throws(FlowUnusable) in try folder.path(of: name) }
                return .file(try SoundFile(path: path))
            }
        case .speech(let text):
            return SoundSource(on: FlowVoice.threads, wake: wake) { () throws(SoundFault) in
                .samples(
                    try SoundFault.reporting { () throws(FlowUnusable) in
                        try voice.samples(of: text, by: plan.voice, withholding: plan.withheldVariables)
                    })
            }
        case .beep: return SoundSource.beep(wake: wake)
        case .ringBack: return SoundSource(on: .files, wake: wake) { .samples(Self.ringBack) }
        }
    }

    /// 1 s of 425 Hz and 4 s of silence, as ITU-T E.180 recommends.
    private static var ringBack: [Int16] {
        var tone = ToneGenerator(frequencyHz: 425, levelDBFS: -20)
        var samples = [Int16](repeating: 0, count: AudioFormat.samples(milliseconds: 1_000))
        var room = samples.mutableSpan
        tone.fill(&room)
        return samples + [Int16](repeating: 0, count: AudioFormat.samples(milliseconds: 4_000))
    }

    private func playSound(at now: Instant) {
        guard let (sound, number) = source else { return }
        switch sound.write(into: &port, at: now, noting: { forked?.wrote($0) }) {
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
            answeredAt = now
            report(.inProgress)
            feed(.answered, at: now)
        }
        heard += samples.count
        record(samples)
        stream(samples, at: now)
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
        recording?.trim.noteSpeech(isOver: isOver, at: place)
        feed(.speech(isOver: isOver), at: now)
    }

    // MARK: Recordings

    private func beginRecording(trims: Bool) {
        guard let folder = plan.recordFolder else {
            return post(
                .course(
                    .recordingFailed(
                        "there is no folder for recordings: behaviour.flow.record_folder in the configuration names one"
                    )))
        }
        recordings += 1
        let number = recordings == 1 ? "" : "-\(recordings)"
        recordedSamples = 0
        let file = CallRecording(path: "\(folder)/\(names.recording)\(number).wav", rate: port.rate.rawValue) {
            [self] result in
            switch result {
            case .success(let path):
                if let path { publish(.noted(.recorded(path), call)) }
                post(.kept(path))
                reportHungUp(path)
            case .failure(let fault):
                post(.course(.recordingFailed(fault.message)))
                reportHungUp(nil)
            }
        }
        let trim = RecordingTrim(trims: trims, from: heard, rate: port.rate.rawValue, isSpeaking: isSpeaking)
        recording = (file, trim)
    }

    private func record(_ samples: [Int16]) {
        guard let written = recording?.trim.take(samples), !written.isEmpty else { return }
        recordedSamples += written.count
        recording?.file.append(written)
    }

    /// - Parameter isHungUp: The caller has ended the call meanwhile.
    private func endRecording(isHungUp: Bool = false) {
        guard case (let file, var trim)? = recording else {
            if isHungUp { noteHangUp() }
            return
        }
        recording = nil
        let rest = trim.finish()
        recordedSamples += rest.count
        file.append(rest)
        // Before the file can be complete.
        if isHungUp { noteHangUp() }
        file.finish(isKept: trim.hasSpoken)
    }

    private var recordedTime: Duration { .milliseconds(recordedSamples * 1_000 / port.rate.rawValue) }

    private func noteHangUp() {
        guard course.lastRequest(of: FlowRecording(url: "", duration: .zero)) != nil else { return }
        origin.enter()
        hungUp.withLock { $0 = (course, recordedTime) }
    }

    /// The server learns of the recording that the caller has ended by hanging up, as of any other. This run is no longer ticked.
    private func reportHungUp(_ path: String?) {
        guard let (course, time) = hungUp.withLock({ $0.take() }) else { return }
        guard case .server(let link) = origin, let path,
            let last = course.lastRequest(
                of: FlowRecording(url: FlowOrigin.url(ofFile: path), duration: time))
        else { return origin.leave() }
        Task { [wire] in
            _ = await link.page(last.request, number: last.number, for: wire)
            link.leave()
        }
    }
}

extension FlowCourse.Input {
    /// Whether the caller of a queue goes through no document of another call's flow any more.
    fileprivate var endsWhisper: Bool {
        switch self {
        case .requeued, .queueJoined, .queueEnded: true
        case .begin, .fetched, .fetchFailed, .received, .requestFailed, .answered, .soundEnded, .soundFailed, .key,
            .speech, .recorded, .calleeAsked, .calleeAnswered, .dialEnded, .queued, .dequeued, .handoverEnded,
            .streamEnded, .forkEnded, .recordingFailed, .timerFired:
            false
        }
    }
}

extension SoundFault {
    /// Does what a flow needs for a sound.
    fileprivate static func reporting<Value>(
        _ work: () throws(FlowUnusable) -> Value
    ) throws(SoundFault) -> Value {
        do throws(FlowUnusable) {
            return try work()
        } catch {
            throw SoundFault(error.message)
        }
    }
}
