public import BotWire
public import Core

/// Where in a flow a call is.
public struct FlowPlace: Equatable, Sendable, CustomStringConvertible {
    /// The document.
    public let document: FlowAddress
    /// The line of the verb; 0 if the document as a whole is meant.
    public let line: Int
    /// The verb's element; empty if the document as a whole is meant.
    public let element: String

    /// `menu.xml:3: Gather`.
    public var description: String {
        "\(document)" + (line > 0 ? ":\(line)" : "") + (element.isEmpty ? "" : ": \(element)")
    }
}

/// What a caller hears.
public enum FlowSound: Equatable, Sendable {
    /// A file of the flow's folder.
    case file(FlowFileName)
    /// A file at a server.
    case url(WebAddress)
    /// A text that is spoken.
    case speech(String)
    /// The tone before a recording.
    case beep
    /// The tone that is heard while a callee rings, once.
    case ringBack
}

/// A flow that cannot continue.
public struct FlowFailure: Equatable, Sendable, CustomStringConvertible {
    /// Where it is.
    public let place: FlowPlace
    /// What went wrong, and what to try.
    public let message: String

    /// The place, and what went wrong there.
    public var description: String { "\(place): \(message)" }
}

/// The course of one call through a flow.
///
/// The driver fetches documents, plays, records and answers, and reports what became of it. Every wait has an end but that for a sound,
/// whose length the driver limits, that for a bot, which has the call, and that for the answer, for which the driver waits with every
/// call.
public struct FlowCourse: ProtocolCore, Sendable {
    /// What happened.
    public enum Input: Equatable, Sendable {
        /// The call has come in, or is established already.
        case begin
        /// The document that was ordered last.
        case fetched(FlowDocument)
        /// There is no such document, or it cannot be used.
        case fetchFailed(FlowUnusable)
        /// The server has answered the request of this number.
        case received(FlowPage, number: Int)
        /// The request of this number has no answer that can be used.
        case requestFailed(FlowUnusable, number: Int)
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
        /// The recording is saved; nil if it was dropped because there was nothing in it.
        case recorded(FlowRecording?)
        /// A dialled callee has answered, and is asked whether it accepts.
        case calleeAsked
        /// A dialled callee is there, or the room has a place.
        case calleeAnswered
        /// The dialled call has ended, or has not come about; with the time for which the caller was connected.
        case dialEnded(DialStatus, Duration)
        /// The caller is in the queue that was ordered, at this place, or has another place now.
        case queued(QueuePlace)
        /// A call takes the caller, which goes through the document first. The text is that call's `CallSid`.
        case dequeued(by: String, FlowWhisper?)
        /// The call that was about to take the caller is gone: the caller waits on, where it did.
        case requeued
        /// The caller is joined to the call that has taken it.
        case queueJoined
        /// The caller is in no queue any more, or never was; with the time that it has waited.
        case queueEnded(QueueResult, Duration)
        /// A hand-over of the call that others have asked for has ended so, and the caller is back.
        case handoverEnded(String)
        /// The bot's part in the call has ended, or has not come about.
        case streamEnded(FlowStreamEnd)
        /// The fork of this number has ended by itself.
        case forkEnded(Int)
        /// The recording cannot be written, for the reason in the text.
        case recordingFailed(String)
        /// ``FlowCourse/nextDeadline`` has come.
        case timerFired
    }

    /// What is to be done.
    public enum Output: Equatable, Sendable {
        /// A verb begins, for logs and trials.
        case reached(FlowPlace)
        /// Read a document.
        case fetch(FlowFileName)
        /// Ask a server for a document; the number comes back with its answer.
        case request(FlowRequest, number: Int)
        /// The server has failed, and its fallback is asked.
        case fellBack(FlowFailure)
        /// Answer the call.
        case answer
        /// Reject the call, which is not answered.
        case reject(FlowRejection)
        /// Play a sound; its number comes back with its end.
        case play(FlowSound, number: Int)
        /// Stop the sound that is played.
        case stopSound
        /// Record the caller from now on.
        case record(trims: Bool)
        /// End the recording, and keep it if there is anything in it.
        case stopRecording
        /// Call callees, or take the caller into a room. Its end follows in any case.
        case dial(FlowDialOrder)
        /// Connect the caller with the callee that has answered.
        case connect
        /// End the dialled call, or cancel it. Its end follows.
        case stopDialling(isTimeout: Bool)
        /// The callee that goes through this document accepts; nothing follows.
        case accept
        /// Put the caller into a queue. ``Input/queueEnded(_:_:)`` follows in any case. Music is to be heard if the caller goes through no
        /// document.
        case enqueue(String, hasMusic: Bool)
        /// Take the caller out of its queue.
        case leaveQueue(QueueResult)
        /// The caller has gone through the document of the call that takes it: join the two.
        case readyToJoin
        /// Connect the caller with a bot. ``Input/streamEnded(_:)`` follows in any case.
        case openStream(FlowStreamOrder)
        /// Fork the call's sound to a server.
        case fork(FlowStreamOrder, number: Int)
        /// End the fork of this number.
        case endFork(Int)
        /// Something is wrong that does not end the call: the document of a caller that waits, who leaves the queue or is joined without it,
        /// or a verb that is passed over.
        case fault(FlowFailure)
        /// Hang up.
        case hangUp
        /// End the call, which cannot continue: nothing follows.
        case fail(FlowFailure)
    }

    /// Documents that a call may fetch without a key being pressed in between.
    public static let mostFetches = 50
    /// Documents that a server may give a call one after the other without a verb that takes time: no sound, pause, key, recording or
    /// dialled call.
    public static let mostIdleRequests = 20
    /// Requests to a server in one call.
    public static let mostRequests = 1_000
    /// Verbs Dial that one call carries out.
    public static let mostDials = 50
    /// A server that has not answered after this time has failed. The driver gives up before that.
    public static let requestTime = Duration.seconds(12)
    /// A document that is not there after this time has failed.
    public static let fetchTime = Duration.seconds(10)
    /// A recording that is not saved after this time has failed.
    public static let savingTime = Duration.seconds(10)
    /// How long a callee may take to accept, from its answer on.
    public static let askingTime = Duration.seconds(60)
    /// A flow that has neither answered nor rejected a call after this time has failed.
    public static let answerTime = Duration.seconds(30)

    /// Twilio's code for a document that could not be got.
    private static let errorCode = "11200"

    private enum State {
        case idle
        case fetching(until: Instant, otherwise: Return?)
        /// Before the verb at the index, until the call is answered.
        case answering
        case resting(until: Instant)
        /// Times that are left, this one among them.
        case sounding(times: Int)
        case gathering(FlowGather, Collecting)
        /// The tone before it.
        case beeping(FlowRecord)
        case recording(FlowRecord, until: Instant, quietUntil: Instant?)
        case saving(FlowRecord, until: Instant)
        case dialling(FlowDial, Dialling)
        /// A bot takes part.
        case streaming(FlowConnect)
        /// In a queue, or about to be, with nothing to do until that is reported.
        case queueing
        case over
    }

    /// A caller's time in a queue.
    private struct Visit {
        /// What the caller goes through.
        enum Role {
            /// It is about to enter the queue.
            case entering
            /// It waits, and goes through the queue's document.
            case waiting
            /// It goes through the document of the call that takes it, whose `CallSid` this is.
            case called(by: String)
            /// It is about to be joined to that call.
            case ready(by: String)
            case joined

            /// What its documents are for.
            var documents: FlowDocumentRole {
                switch self {
                case .called, .ready: .whisper
                case .entering, .waiting, .joined: .wait
                }
            }
        }

        let verb: FlowEnqueue
        /// The verb, behind which the call continues.
        let back: Return
        /// Documents that the flow had read before.
        let fetches: Int
        var role = Role.entering
        /// When documents were counted from zero.
        var countedSince = Instant.zero
        /// Nil before the caller was in the queue.
        var found: QueuePlace?

        /// What a server receives at its end.
        func result(_ result: QueueResult, _ time: Duration) -> [FormFields.Field] {
            let fields = [FormFields.Field("QueueResult", result.rawValue)]
            guard let found else { return fields }
            return fields + [
                FormFields.Field("QueueSid", found.sid), FormFields.Field("QueueTime", "\(time.components.seconds)"),
            ]
        }
    }

    /// What happens in a ``FlowDial``.
    private enum Dialling {
        case ringing(until: Instant)
        /// The callee is there, and the caller is answered first.
        case answering
        case connected(until: Instant?)
        /// The end was ordered.
        case ending
    }

    /// Where a call continues if there is no document for the keys that were pressed.
    private struct Return {
        let address: FlowAddress
        let steps: [FlowDocument.Step]
        let index: Int
    }

    /// What happens in a ``FlowGather``.
    private enum Collecting {
        /// A prompt is played, that number of times.
        case prompt(Int, times: Int)
        /// A pause between prompts.
        case pause(Int, until: Instant)
        /// The keys so far.
        case keys(String, until: Instant)
    }

    private var state = State.idle
    /// Of the current document.
    private var address: FlowAddress
    private let first: Webhook.Method
    /// Asked once if a server fails.
    private var fallback: Webhook?
    /// Why the fallback is asked.
    private var fault: String?
    /// The number of the newest request, whose answer alone counts.
    private var requests = 0
    /// Requests that count towards ``mostRequests``.
    private var counted = 0
    private var dials = 0
    /// Forks that run, with their numbers and names.
    private var forks: [(number: Int, name: String?)] = []
    private var lastFork = 0
    /// The caller is in a queue, or about to be: documents are those of the queue.
    private var visit: Visit?
    private var steps: [FlowDocument.Step] = []
    /// Of the verb that is carried out.
    private var index = 0
    private var values: FlowValues
    private var isAnswered: Bool
    /// A callee that is asked whether it accepts goes through the flow.
    private let isAsking: Bool
    private var answerBy: Instant?
    private var isSpeaking = false
    /// Since a key was pressed.
    private var fetches = 0
    /// Of the last sound.
    private var sound = 0

    /// Makes the course of a call.
    ///
    /// - Parameters:
    ///   - first: The flow's first document.
    ///   - isAnswered: Whether the call is answered already, or was placed by this side.
    ///   - isAsking: Whether this is a callee that accepts by reaching the end of a document.
    public init(first: FlowFileName, values: FlowValues, isAnswered: Bool, isAsking: Bool = false) {
        self.isAsking = isAsking
        address = .file(first)
        self.first = .post
        self.values = values
        self.isAnswered = isAnswered
    }

    /// Makes the course of a call whose documents a server gives.
    ///
    /// - Parameters: As for one of files.
    public init(asking server: FlowServer, values: FlowValues, isAnswered: Bool, isAsking: Bool = false) {
        self.isAsking = isAsking
        address = .url(server.first.address)
        first = server.first.method
        fallback = server.fallback
        self.values = values
        self.isAnswered = isAnswered
    }

    /// When ``Input/timerFired`` is due; nil if never.
    public var nextDeadline: Instant? {
        let own: Instant? =
            switch state {
            case .idle, .answering, .sounding, .beeping, .streaming, .over, .queueing: nil
            case .dialling(_, .answering), .dialling(_, .ending): nil
            case .dialling(_, .ringing(let time)): time
            case .dialling(_, .connected(let time)): time
            case .fetching(let time, _), .resting(let time), .saving(_, let time): time
            case .gathering(_, .prompt): nil
            case .gathering(_, .pause(_, let time)), .gathering(_, .keys(_, let time)): time
            case .recording(_, let longest, let quiet): min(longest, quiet ?? longest)
            }
        guard !isAnswered, !isOver, let answerBy else { return own }
        return own.map { min($0, answerBy) } ?? answerBy
    }

    /// Whether a Gather has played its prompts, or taken a key, and waits for the next one.
    public var awaitsKey: Bool { if case .gathering(_, .keys) = state { true } else { false } }

    /// Whether nothing follows.
    public var isOver: Bool { if case .over = state { true } else { false } }

    /// Takes what happened.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        if case .over = state { return }
        switch input {
        case .begin: begin(at: now, into: &outbox)
        case .fetched(let document): take(document, at: now, into: &outbox)
        case .fetchFailed(let fault): noteFailedFetch(fault, at: now, into: &outbox)
        case .received(let page, let number): take(page, number, at: now, into: &outbox)
        case .requestFailed(let fault, let number):
            if number == requests { noteFailedRequest(fault.message, at: now, into: &outbox) }
        case .answered: noteAnswer(at: now, into: &outbox)
        case .soundEnded(let number): if number == sound { endSound(at: now, into: &outbox) }
        case .soundFailed(let number, let why): if number == sound, isSounding { fail(why, into: &outbox) }
        case .key(let key): take(key, at: now, into: &outbox)
        case .speech(let isOver): noteSpeech(isOver: isOver, at: now)
        case .calleeAsked:
            guard case .dialling(let dial, .ringing) = state else { return }
            state = .dialling(dial, .ringing(until: now.advanced(by: Self.askingTime)))
        case .calleeAnswered: noteCallee(at: now, into: &outbox)
        case .dialEnded(let status, let time): endDial(status, time, at: now, into: &outbox)
        case .queued(let place): noteQueue(place, at: now, into: &outbox)
        case .dequeued(let call, let whisper): noteCall(call, whisper, at: now, into: &outbox)
        case .requeued:
            guard let role = visit?.role else { return }
            switch role {
            case .called, .ready: beginWaiting(at: now, into: &outbox)
            case .entering, .waiting, .joined: return
            }
        case .queueJoined: visit?.role = .joined
        case .queueEnded(let result, let time): endVisit(result, time, at: now, into: &outbox)
        case .handoverEnded(let status): values.handoverStatus = status
        case .streamEnded(let end): endStream(end, at: now, into: &outbox)
        case .forkEnded(let number): forks.removeAll { $0.number == number }
        case .recorded(let recording): endRecording(recording, at: now, into: &outbox)
        case .recordingFailed(let why): if isRecording { fail(why, into: &outbox) }
        case .timerFired: fire(at: now, into: &outbox)
        }
    }

    // MARK: Documents

    private mutating func begin(at now: Instant, into outbox: inout [Output]) {
        guard case .idle = state else { return }
        if !isAnswered { answerBy = now.advanced(by: Self.answerTime) }
        switch address {
        case .file(let name): read(name, at: now, into: &outbox)
        case .url(let url): ask(Webhook(url, first), at: now, into: &outbox)
        }
    }

    private mutating func read(
        _ next: FlowFileName, otherwise: Return? = nil, at now: Instant, into outbox: inout [Output]
    ) {
        noteWaiting(at: now)
        guard fetches < Self.mostFetches else {
            return fail(
                "the flow has read \(Self.mostFetches) documents and no key was pressed: it goes round in circles. "
                    + "End it with Hangup", into: &outbox)
        }
        fetches += 1
        address = .file(next)
        steps = []
        index = 0
        state = .fetching(until: now.advanced(by: Self.fetchTime), otherwise: otherwise)
        outbox.append(.fetch(next))
    }

    private mutating func ask(
        _ webhook: Webhook, _ result: [FormFields.Field] = [], at now: Instant, into outbox: inout [Output]
    ) {
        noteWaiting(at: now)
        guard fetches < Self.mostIdleRequests else {
            return fail(
                "the server has answered \(Self.mostIdleRequests) documents one after the other without a verb that takes time: "
                    + "the flow goes round in circles. End it with Hangup", into: &outbox)
        }
        // While the call waits in a queue its longest wait, and the time that a document takes, limit this.
        guard visit != nil || counted < Self.mostRequests else {
            return fail("the call has asked its server \(Self.mostRequests) times, the limit", into: &outbox)
        }
        if visit == nil { counted += 1 }
        fetches += 1
        requests += 1
        address = .url(webhook.address)
        steps = []
        index = 0
        state = .fetching(until: now.advanced(by: Self.requestTime), otherwise: nil)
        outbox.append(
            .request(
                FlowRequest(webhook, isAnswered: isAnswered, result: result + queueFields(at: now)), number: requests))
    }

    /// Continues with the document that a reference names; without one with the current document again.
    private mutating func fetch(
        _ text: FlowText?, _ method: Webhook.Method, _ result: [FormFields.Field], at now: Instant,
        into outbox: inout [Output]
    ) {
        if case .file(let name) = address, text == nil { return read(name, at: now, into: &outbox) }
        guard let next = resolve(text, into: &outbox) else { return }
        switch next {
        case .url(let url): ask(Webhook(url, method), result, at: now, into: &outbox)
        case .file(let name):
            let isOptional = text?.dependsOnResult ?? false
            let back = isOptional ? Return(address: address, steps: steps, index: index) : nil
            read(name, otherwise: back, at: now, into: &outbox)
        }
    }

    /// What a reference in the current document names.
    private mutating func resolve(_ text: FlowText?, into outbox: inout [Output]) -> FlowAddress? {
        guard let text else { return address }
        do throws(FlowFileName.Fault) {
            switch address {
            case .file: return .file(try text.fileName(values))
            case .url(let base): return .url(try text.address(values, from: base))
            }
        } catch {
            fail(error.message, into: &outbox)
            return nil
        }
    }

    /// The server has failed: its fallback is asked, and if it was, the call ends.
    private mutating func noteFailedRequest(_ why: String, at now: Instant, into outbox: inout [Output]) {
        guard case .fetching = state else { return }
        // A call whose queue cannot be heard leaves it, which its flow handles.
        guard visit == nil else { return fail(why, ofDocument: true, into: &outbox) }
        guard let fallback else {
            return fail(
                why + (fault.map { "; the fallback was asked because \($0)" } ?? ""), ofDocument: true, into: &outbox)
        }
        let place = FlowPlace(document: address, line: 0, element: "")
        outbox.append(.fellBack(FlowFailure(place: place, message: why)))
        fault = "\(place): \(why)"
        self.fallback = nil
        ask(
            fallback, [FormFields.Field("ErrorCode", Self.errorCode), FormFields.Field("ErrorUrl", "\(address)")],
            at: now, into: &outbox)
    }

    /// Keys that name no document are no answer: the verb behind the current one follows. Everything else ends the call.
    private mutating func noteFailedFetch(_ fault: FlowUnusable, at now: Instant, into outbox: inout [Output]) {
        guard case .fetching(_, let otherwise) = state else { return }
        guard fault.isMissing, let otherwise else { return fail(fault.message, ofDocument: true, into: &outbox) }
        (address, steps, index) = (otherwise.address, otherwise.steps, otherwise.index)
        proceed(at: now, into: &outbox)
    }

    private mutating func take(_ page: FlowPage, _ number: Int, at now: Instant, into outbox: inout [Output]) {
        guard number == requests, case .fetching = state else { return }
        address = .url(page.address)
        take(page.document, at: now, into: &outbox)
    }

    private mutating func take(_ document: FlowDocument, at now: Instant, into outbox: inout [Output]) {
        guard case .fetching = state else { return }
        steps = document.steps
        carryOut(at: now, into: &outbox)
    }

    // MARK: Verbs

    private mutating func proceed(at now: Instant, into outbox: inout [Output]) {
        index += 1
        carryOut(at: now, into: &outbox)
    }

    /// Begins the verb at the index. Behind the last one the call ends.
    private mutating func carryOut(at now: Instant, into outbox: inout [Output]) {
        if isAsking, index >= steps.count { return end(.accept, into: &outbox) }
        if let visit {
            visit.found?.put(into: &values, at: now)
            guard index < steps.count else { return endDocument(of: visit, at: now, into: &outbox) }
            let role = visit.role.documents
            guard role.admits(steps[index].verb) else { return fail(role.refusal, into: &outbox) }
        }
        let verb = index < steps.count ? steps[index].verb : .hangup
        guard isAnswered || !verb.needsAnswer else {
            state = .answering
            answerBy = nil
            return outbox.append(.answer)
        }
        outbox.append(.reached(place))
        switch verb {
        case .say(_, let times), .play(_, let times): play(verb, .sounding(times: times), into: &outbox)
        case .pause(let time): state = .resting(until: now.advanced(by: time))
        case .gather(let gather): prompt(0, of: gather, at: now, into: &outbox)
        case .record(let record):
            if record.beeps {
                start(.beep, .beeping(record), into: &outbox)
            } else {
                beginRecording(record, at: now, into: &outbox)
            }
        case .redirect(let text, let method): fetch(text, method, [], at: now, into: &outbox)
        case .dial(let dial): begin(dial, at: now, into: &outbox)
        case .connect(let connect): begin(connect, into: &outbox)
        case .start(let stream):
            fork(stream, into: &outbox)
            if !isOver { proceed(at: now, into: &outbox) }
        case .stop(let name):
            endFork(name, into: &outbox)
            proceed(at: now, into: &outbox)
        case .enqueue(let enqueue): begin(enqueue, into: &outbox)
        case .leave: leaveQueue(into: &outbox)
        case .reject(let how): reject(how, into: &outbox)
        case .hangup: end(.hangUp, into: &outbox)
        }
    }

    private var place: FlowPlace {
        guard index < steps.count else { return FlowPlace(document: address, line: 0, element: "") }
        return FlowPlace(document: address, line: steps[index].line, element: steps[index].verb.name)
    }

    private mutating func reject(_ how: FlowRejection, into outbox: inout [Output]) {
        guard !isAnswered else {
            return fail("the call is answered, and can no longer be rejected; use Hangup here", into: &outbox)
        }
        end(.reject(how), into: &outbox)
    }

    private mutating func end(_ output: Output, into outbox: inout [Output]) {
        state = .over
        outbox.append(output)
    }

    private mutating func fail(_ why: String, ofDocument: Bool = false, into outbox: inout [Output]) {
        let place = ofDocument ? FlowPlace(document: address, line: 0, element: "") : place
        if let visit { return fail(visit, FlowFailure(place: place, message: why), into: &outbox) }
        end(.fail(FlowFailure(place: place, message: why)), into: &outbox)
    }

    private mutating func noteAnswer(at now: Instant, into outbox: inout [Output]) {
        guard !isAnswered else { return }
        isAnswered = true
        if case .dialling(let dial, .answering) = state { return connect(dial, at: now, into: &outbox) }
        // Of a second Dial, whose caller was answered for the callee of the first one, which is gone.
        if case .dialling(let dial, .ringing) = state, dial.rings {
            return start(.ringBack, state, into: &outbox)
        }
        guard case .answering = state else { return }
        carryOut(at: now, into: &outbox)
    }

    // MARK: Sounds

    private mutating func start(_ new: FlowSound, _ next: State, into outbox: inout [Output]) {
        state = next
        sound += 1
        outbox.append(.play(new, number: sound))
    }

    /// Plays the sound of a verb that has one.
    private mutating func play(_ verb: FlowVerb, _ next: State, into outbox: inout [Output]) {
        switch verb {
        case .say(let text, _): start(.speech(text.spoken(values)), next, into: &outbox)
        case .play(let text, _):
            switch resolve(text, into: &outbox) {
            case .file(let name): start(.file(name), next, into: &outbox)
            case .url(let url): start(.url(url), next, into: &outbox)
            case nil: return
            }
        case .pause, .gather, .record, .redirect, .dial, .connect, .start, .stop, .enqueue, .leave, .reject, .hangup:
            return
        }
    }

    private var isSounding: Bool {
        switch state {
        case .sounding, .beeping, .gathering(_, .prompt): true
        case .idle, .fetching, .answering, .resting, .gathering, .recording, .saving, .dialling, .streaming, .queueing,
            .over:
            false
        }
    }

    /// A verb has taken time, so that a flow of a server does not go round in circles.
    private mutating func noteTime() { if visit == nil, case .url = address { fetches = 0 } }

    private mutating func endSound(at now: Instant, into outbox: inout [Output]) {
        noteTime()
        switch state {
        case .sounding(let times) where times > 1:
            play(steps[index].verb, .sounding(times: times - 1), into: &outbox)
        case .sounding: proceed(at: now, into: &outbox)
        case .gathering(let gather, .prompt(let index, let times)) where times > 1:
            let next = State.gathering(gather, .prompt(index, times: times - 1))
            play(gather.prompts[index].verb, next, into: &outbox)
        case .gathering(let gather, .prompt(let index, _)): prompt(index + 1, of: gather, at: now, into: &outbox)
        case .beeping(let record): beginRecording(record, at: now, into: &outbox)
        case .dialling(_, .ringing): start(.ringBack, state, into: &outbox)
        case .idle, .fetching, .answering, .resting, .gathering, .recording, .saving, .dialling, .streaming, .queueing,
            .over:
            return
        }
    }

    // MARK: Gather

    /// Begins a prompt. Behind the last one only keys are awaited.
    private mutating func prompt(
        _ number: Int, of gather: FlowGather, at now: Instant, into outbox: inout [Output]
    ) {
        guard number < gather.prompts.count else { return awaitKey(gather, after: "", at: now) }
        let verb = gather.prompts[number].verb
        switch verb {
        case .pause(let time): state = .gathering(gather, .pause(number, until: now.advanced(by: time)))
        case .say(_, let times), .play(_, let times):
            play(verb, .gathering(gather, .prompt(number, times: times)), into: &outbox)
        case .gather, .record, .redirect, .dial, .connect, .start, .stop, .enqueue, .leave, .reject, .hangup: return
        }
    }

    private mutating func awaitKey(_ gather: FlowGather, after keys: String, at now: Instant) {
        state = .gathering(gather, .keys(keys, until: now.advanced(by: gather.timeout)))
    }

    private mutating func take(_ key: Character, at now: Instant, into outbox: inout [Output]) {
        fetches = 0
        switch state {
        case .gathering(let gather, let collecting): take(key, gather, collecting, at: now, into: &outbox)
        case .recording(let record, _, _) where record.finishKeys.contains(key):
            values.digits = String(key)
            stopRecording(record, at: now, into: &outbox)
        case .dialling(let dial, .ringing), .dialling(let dial, .connected):
            if key == "*", dial.hangsUpOnStar { stop(dial, isTimeout: false, into: &outbox) }
        case .idle, .fetching, .answering, .resting, .sounding, .beeping, .recording, .saving, .dialling, .streaming,
            .queueing,
            .over:
            return
        }
    }

    private mutating func take(
        _ key: Character, _ gather: FlowGather, _ collecting: Collecting, at now: Instant, into outbox: inout [Output]
    ) {
        // The flash of the hook and the keys A to D are no part of TwiML's answers.
        guard "0123456789*#".contains(key) else { return }
        var keys = ""
        switch collecting {
        case .prompt: outbox.append(.stopSound)
        case .pause: break
        case .keys(let earlier, _): keys = earlier
        }
        if key != gather.finishKey { keys.append(key) }
        guard key != gather.finishKey, keys.count < gather.keys else {
            return complete(gather, with: keys, at: now, into: &outbox)
        }
        awaitKey(gather, after: keys, at: now)
    }

    private mutating func complete(
        _ gather: FlowGather, with keys: String, at now: Instant, into outbox: inout [Output]
    ) {
        values.digits = keys
        guard !keys.isEmpty || gather.actsOnEmptyResult else { return proceed(at: now, into: &outbox) }
        fetch(gather.action, gather.method, [FormFields.Field("Digits", keys)], at: now, into: &outbox)
    }

    // MARK: Record

    private var isRecording: Bool {
        switch state {
        case .recording, .saving: true
        case .idle, .fetching, .answering, .resting, .sounding, .gathering, .beeping, .dialling, .streaming, .queueing,
            .over:
            false
        }
    }

    private mutating func beginRecording(_ record: FlowRecord, at now: Instant, into outbox: inout [Output]) {
        values.digits = ""
        state = .recording(
            record, until: now.advanced(by: record.longest),
            quietUntil: isSpeaking ? nil : now.advanced(by: record.timeout))
        outbox.append(.record(trims: record.trims))
    }

    private mutating func noteSpeech(isOver: Bool, at now: Instant) {
        isSpeaking = !isOver
        guard case .recording(let record, let longest, _) = state else { return }
        state = .recording(record, until: longest, quietUntil: isOver ? now.advanced(by: record.timeout) : nil)
    }

    private mutating func stopRecording(_ record: FlowRecord, at now: Instant, into outbox: inout [Output]) {
        state = .saving(record, until: now.advanced(by: Self.savingTime))
        outbox.append(.stopRecording)
    }

    private mutating func endRecording(
        _ recording: FlowRecording?, at now: Instant, into outbox: inout [Output]
    ) {
        guard case .saving(let record, _) = state else { return }
        noteTime()
        guard let recording else { return proceed(at: now, into: &outbox) }
        fetch(record.action, record.method, recording.fields(keys: values.digits), at: now, into: &outbox)
    }

    /// What the server is asked of a recording that the caller has ended by hanging up, and the number of that request; nil without such a
    /// recording, and if the flow is in files. No call follows its answer.
    public func lastRequest(of recording: FlowRecording) -> (request: FlowRequest, number: Int)? {
        let record: FlowRecord
        switch state {
        case .recording(let own, _, _), .saving(let own, _): record = own
        case .idle, .fetching, .answering, .resting, .sounding, .gathering, .beeping, .dialling, .streaming, .queueing,
            .over:
            return nil
        }
        guard case .url(let base) = address else { return nil }
        let target = record.action.map { try? $0.address(values, from: base) } ?? base
        guard let target else { return nil }
        let request = FlowRequest(
            Webhook(target, record.method), isAnswered: true, result: recording.fields(keys: "hangup"))
        return (request, requests + 1)
    }

    // MARK: Dial

    private mutating func begin(_ dial: FlowDial, at now: Instant, into outbox: inout [Output]) {
        guard !isAsking else {
            return fail("a callee that is asked cannot be connected with another one; remove Dial", into: &outbox)
        }
        guard dials < Self.mostDials else {
            return fail("the call has dialled \(Self.mostDials) times, the limit", into: &outbox)
        }
        guard let destination = destination(of: dial, into: &outbox) else { return }
        dials += 1
        let ringing = State.dialling(dial, .ringing(until: now.advanced(by: dial.timeout)))
        outbox.append(.dial(FlowDialOrder(destination, timeout: dial.timeout)))
        if isAnswered, dial.rings {
            start(.ringBack, ringing, into: &outbox)
        } else {
            state = ringing
        }
    }

    private mutating func destination(
        of dial: FlowDial, into outbox: inout [Output]
    ) -> FlowDialOrder.Destination? {
        switch dial.destination {
        case .room(let name, let most, let hasTones):
            return .room(name.spoken(values), mostMembers: most, hasTones: hasTones)
        case .queue(let name, let whisper, let method):
            guard let whisper else { return .queue(name.spoken(values), whisper: nil) }
            return resolve(whisper, into: &outbox).map {
                .queue(name.spoken(values), whisper: FlowWhisper($0, method))
            }
        case .callees(let callees, let asking):
            var document: FlowAddress?
            if let asking {
                document = resolve(asking, into: &outbox)
                if document == nil { return nil }
            }
            return .callees(callees.map { $0.spoken(values) }, asking: document)
        }
    }

    private mutating func noteCallee(at now: Instant, into outbox: inout [Output]) {
        guard case .dialling(let dial, .ringing) = state else { return }
        stopRinging(into: &outbox)
        if isAnswered { return connect(dial, at: now, into: &outbox) }
        state = .dialling(dial, .answering)
        answerBy = nil
        outbox.append(.answer)
    }

    private mutating func connect(_ dial: FlowDial, at now: Instant, into outbox: inout [Output]) {
        state = .dialling(dial, .connected(until: dial.timeLimit.map { now.advanced(by: $0) }))
        outbox.append(.connect)
    }

    private func stopRinging(into outbox: inout [Output]) {
        if isAnswered { outbox.append(.stopSound) }
    }

    private mutating func stop(_ dial: FlowDial, isTimeout: Bool, into outbox: inout [Output]) {
        if case .dialling(_, .ringing) = state { stopRinging(into: &outbox) }
        state = .dialling(dial, .ending)
        outbox.append(.stopDialling(isTimeout: isTimeout))
    }

    private mutating func endDial(
        _ status: DialStatus, _ time: Duration, at now: Instant, into outbox: inout [Output]
    ) {
        guard case .dialling(let dial, let dialling) = state else { return }
        if case .ringing = dialling { stopRinging(into: &outbox) }
        (values.dialStatus, values.dialSeconds) = (status.rawValue, "\(time.components.seconds)")
        noteTime()
        guard let action = dial.action else { return proceed(at: now, into: &outbox) }
        let result = [
            FormFields.Field("DialCallStatus", values.dialStatus),
            FormFields.Field("DialCallDuration", values.dialSeconds),
        ]
        fetch(action, dial.method, result, at: now, into: &outbox)
    }

    // MARK: Streams

    private mutating func begin(_ connect: FlowConnect, into outbox: inout [Output]) {
        guard !isAsking else {
            return fail("a callee that is asked cannot be connected with a bot; remove Connect", into: &outbox)
        }
        guard let order = order(connect.stream, into: &outbox) else { return }
        state = .streaming(connect)
        outbox.append(.openStream(order))
    }

    private mutating func endStream(_ end: FlowStreamEnd, at now: Instant, into outbox: inout [Output]) {
        guard case .streaming(let connect) = state else { return }
        values.streamEvent = end.event
        if let failure = end.failure {
            outbox.append(.fault(FlowFailure(place: place, message: failure)))
        } else {
            noteTime()
        }
        guard let action = connect.action else { return proceed(at: now, into: &outbox) }
        fetch(action, connect.method, end.fields(name: connect.stream.name), at: now, into: &outbox)
    }

    /// A flow that comes to its Start again has the same fork, and one that has too many continues without another.
    private mutating func fork(_ stream: FlowStream, into outbox: inout [Output]) {
        if let name = stream.name, forks.contains(where: { $0.name == name }) { return }
        guard forks.count < FlowStream.mostForks else {
            let why =
                "the call has \(forks.count) streams, the limit, and begins no other; end one with Stop, or give this one a name"
            return outbox.append(.fault(FlowFailure(place: place, message: why)))
        }
        guard let order = order(stream, into: &outbox) else { return }
        lastFork += 1
        forks.append((lastFork, stream.name))
        outbox.append(.fork(order, number: lastFork))
    }

    private mutating func endFork(_ name: String, into outbox: inout [Output]) {
        for fork in forks where fork.name == name { outbox.append(.endFork(fork.number)) }
        forks.removeAll { $0.name == name }
    }

    private mutating func order(_ stream: FlowStream, into outbox: inout [Output]) -> FlowStreamOrder? {
        guard let address = stream.url.socketAddress(values) else {
            fail("url of Stream is no URL of wss or ws, as \"\(stream.url.source)\" has it", into: &outbox)
            return nil
        }
        let parameters = stream.parameters.map { ($0.name, $0.value.spoken(values)) }
        return FlowStreamOrder(
            to: address, parameters: Dictionary(parameters) { first, _ in first }, tracks: stream.tracks)
    }

    // MARK: Time

    private mutating func fire(at now: Instant, into outbox: inout [Output]) {
        guard let deadline = nextDeadline, deadline <= now else { return }
        if !isAnswered, let answerBy, answerBy <= now {
            let remedy =
                if case .dialling = state { "shorten the Pause before Dial, or its timeout" } else {
                    "shorten the Pause"
                }
            return fail("the call was not answered within \(Self.answerTime.text); \(remedy)", into: &outbox)
        }
        switch state {
        case .fetching:
            if case .url = address {
                return noteFailedRequest("was not answered within \(Self.requestTime.text)", at: now, into: &outbox)
            }
            fail("was not read within \(Self.fetchTime.text)", ofDocument: true, into: &outbox)
        case .resting:
            noteTime()
            proceed(at: now, into: &outbox)
        case .gathering(let gather, .pause(let number, _)): prompt(number + 1, of: gather, at: now, into: &outbox)
        case .gathering(let gather, .keys(let keys, _)):
            noteTime()
            complete(gather, with: keys, at: now, into: &outbox)
        case .recording(let record, _, _): stopRecording(record, at: now, into: &outbox)
        case .saving: fail("the recording was not saved within \(Self.savingTime.text)", into: &outbox)
        case .dialling(let dial, .ringing): stop(dial, isTimeout: true, into: &outbox)
        case .dialling(let dial, .connected): stop(dial, isTimeout: false, into: &outbox)
        case .idle, .answering, .sounding, .gathering, .beeping, .dialling, .streaming, .queueing, .over: return
        }
    }

    // MARK: Queues

    private mutating func begin(_ enqueue: FlowEnqueue, into outbox: inout [Output]) {
        guard !isAsking else {
            return fail("a callee that is asked cannot wait in a queue; remove Enqueue", into: &outbox)
        }
        visit = Visit(verb: enqueue, back: Return(address: address, steps: steps, index: index), fetches: fetches)
        state = .queueing
        outbox.append(.enqueue(enqueue.queue.spoken(values), hasMusic: enqueue.wait == nil))
    }

    private mutating func noteQueue(_ place: QueuePlace, at now: Instant, into outbox: inout [Output]) {
        guard let role = visit?.role else { return }
        visit?.found = place
        if case .entering = role { beginWaiting(at: now, into: &outbox) }
    }

    /// Begins the document that the caller hears while it waits, in which names are those of the document with Enqueue.
    private mutating func beginWaiting(at now: Instant, into outbox: inout [Output]) {
        guard let verb = visit?.verb, let back = visit?.back else { return }
        quiet(into: &outbox)
        visit?.role = .waiting
        (address, steps, index) = (back.address, back.steps, back.index)
        visit?.found?.put(into: &values, at: now)
        guard let wait = verb.wait, let next = resolve(wait, into: &outbox) else { return }
        switch next {
        case .file(let name): read(name, at: now, into: &outbox)
        case .url(let url): ask(Webhook(url, verb.waitMethod), at: now, into: &outbox)
        }
    }

    /// A caller may wait for as long as the queue lets it: documents count for a second each time.
    private mutating func noteWaiting(at now: Instant) {
        guard let since = visit?.countedSince, since.advanced(by: .seconds(1)) <= now else { return }
        visit?.countedSince = now
        fetches = 0
    }

    private mutating func endDocument(of visit: Visit, at now: Instant, into outbox: inout [Output]) {
        switch visit.role {
        case .waiting: beginWaiting(at: now, into: &outbox)
        case .called: beReady(into: &outbox)
        case .entering, .ready, .joined: return
        }
    }

    private mutating func leaveQueue(into outbox: inout [Output]) {
        guard visit != nil else {
            return fail(FlowDocumentRole.flow.refusal, into: &outbox)
        }
        state = .queueing
        outbox.append(.leaveQueue(.leave))
    }

    private mutating func noteCall(
        _ call: String, _ whisper: FlowWhisper?, at now: Instant, into outbox: inout [Output]
    ) {
        guard let role = visit?.role else { return }
        switch role {
        case .entering, .waiting: break
        case .called, .ready, .joined: return
        }
        quiet(into: &outbox)
        visit?.role = .called(by: call)
        fetches = 0
        switch whisper?.address {
        case .file(let name)?: read(name, at: now, into: &outbox)
        case .url(let url)?: ask(Webhook(url, whisper?.method ?? .post), at: now, into: &outbox)
        case nil: beReady(into: &outbox)
        }
    }

    private mutating func beReady(into outbox: inout [Output]) {
        guard case .called(let call)? = visit?.role else { return }
        visit?.role = .ready(by: call)
        state = .queueing
        outbox.append(.readyToJoin)
    }

    /// A caller that cannot hear its queue's document leaves the queue. One that cannot hear that of the call that takes it is joined.
    private mutating func fail(_ visit: Visit, _ failure: FlowFailure, into outbox: inout [Output]) {
        outbox.append(.fault(failure))
        state = .queueing
        switch visit.role {
        case .called: beReady(into: &outbox)
        case .entering, .waiting, .ready, .joined: outbox.append(.leaveQueue(.error))
        }
    }

    /// Stops what the caller hears.
    private mutating func quiet(into outbox: inout [Output]) {
        if isSounding { outbox.append(.stopSound) }
        // A late answer is of nothing that is waited for.
        if case .fetching = state { requests += 1 }
        state = .queueing
    }

    /// What a server receives of the queue, with each request from within it.
    private func queueFields(at now: Instant) -> [FormFields.Field] {
        guard let visit, let found = visit.found else { return [] }
        let all = found.fields(at: now)
        switch visit.role {
        case .entering, .waiting: return all
        case .called(let call), .ready(let call):
            return all.filter { ["QueueSid", "QueueTime"].contains($0.name) }
                + [FormFields.Field("DequeueingCallSid", call)]
        case .joined: return []
        }
    }

    private mutating func endVisit(
        _ result: QueueResult, _ time: Duration, at now: Instant, into outbox: inout [Output]
    ) {
        guard let visit else { return }
        quiet(into: &outbox)
        self.visit = nil
        fetches = visit.fetches
        (address, steps, index) = (visit.back.address, visit.back.steps, visit.back.index)
        values.queueResult = result.rawValue
        values.queueSeconds = "\(time.components.seconds)"
        if time >= .seconds(1) { noteTime() }
        guard let action = visit.verb.action else { return proceed(at: now, into: &outbox) }
        fetch(action, visit.verb.method, visit.result(result, time), at: now, into: &outbox)
    }

    /// What the server is asked of a caller that has hung up in a queue, or while it was joined to the call that took it, and the number of
    /// that request; nil for others, and if the flow is in files. No call follows its answer.
    public func lastRequest(ofQueueAt now: Instant) -> (request: FlowRequest, number: Int)? {
        guard let visit, let action = visit.verb.action, case .url(let base) = visit.back.address,
            let target = try? action.address(values, from: base)
        else { return nil }
        let result: QueueResult = if case .joined = visit.role { .bridged } else { .hangup }
        let time = visit.found.map { $0.since.duration(to: now) } ?? .zero
        let request = FlowRequest(
            Webhook(target, visit.verb.method), isAnswered: true, result: visit.result(result, time))
        return (request, requests + 1)
    }
}
