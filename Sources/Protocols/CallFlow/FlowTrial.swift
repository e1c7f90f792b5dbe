internal import Core

/// A call through a flow without a call: on a clock of its own, with a caller who presses given keys.
///
/// The caller presses one key after the other, each half a second after a Gather has played its prompts or has taken the key before. At a
/// Record the caller speaks for three seconds, and is then silent. A call is answered as soon as the flow answers it. A dialled call has
/// the given result: callees answer or decline after two seconds, and the caller is connected for five. In a queue the caller is the only
/// one, and is taken after ten seconds, or leaves it with the given result.
public struct FlowTrial: Sendable {
    /// What happens in the call.
    public enum Note: Equatable, Sendable {
        /// An output of the course.
        case output(FlowCourse.Output)
        /// The document that was to be read does not exist.
        case missing(FlowFileName)
        /// The length of the sound that begins.
        case length(Duration)
        /// The caller presses a key.
        case key(Character)
        /// A dialled callee answers, or the room has a place.
        case connected
        /// The dialled call has ended.
        case dialEnded(DialStatus)
        /// The caller is in a queue.
        case queued(QueuePlace)
        /// A call takes the caller from its queue.
        case taken
        /// The caller is in its queue no more.
        case queueEnded(QueueResult)
        /// The bot has left the call.
        case streamEnded
        /// The caller has spoken, and the recording is saved.
        case recorded(Duration)
    }

    /// How the call ends.
    public enum End: Equatable, Sendable {
        /// The flow hangs up.
        case hungUp
        /// The flow rejects the call.
        case rejected(FlowRejection)
        /// The flow cannot continue.
        case failed(FlowFailure)
        /// The call reaches its longest duration.
        case tooLong
    }

    /// How long the caller takes to press a key.
    public static let keyTime = Duration.milliseconds(500)
    /// How long the caller speaks for a recording.
    public static let speechTime = Duration.seconds(3)

    /// How long a callee rings before it answers, or is busy.
    public static let ringingTime = Duration.seconds(2)
    /// How long the caller is connected, also with a bot.
    public static let connectedTime = Duration.seconds(5)

    /// How long the caller waits in a queue.
    public static let waitingTime = Duration.seconds(10)
    /// How long it waits at most.
    public static let longestWait = Duration.seconds(3_600)

    private var course: FlowCourse
    private let queueResult: QueueResult
    private var queuedSince = Instant.zero
    /// What happens next in the queue.
    private var queueNext: (input: FlowCourse.Input, at: Instant)?
    /// When the bot leaves that takes part.
    private var streamEnd: Instant?
    private let dialResult: DialStatus
    /// What a dialled call does next.
    private var dialNext: (input: FlowCourse.Input, at: Instant)?
    private var connectedSince: Instant?
    private var keys: ArraySlice<Character>
    private let longest: Duration
    private var now = Instant.zero
    private var soundEnd: (number: Int, at: Instant)?
    private var keyAt: Instant?
    private var speechEnd: Instant?
    private var recordedSince = Instant.zero
    private var end: End?

    /// Prepares a call.
    ///
    /// - Parameters:
    ///   - first: The flow's first document.
    ///   - keys: What the caller presses.
    ///   - dialResult: How dialled calls end.
    ///   - queueResult: How waiting in a queue ends; with ``QueueResult/leave`` the document of the queue decides.
    ///   - longest: The longest call.
    public init(
        first: FlowFileName, values: FlowValues, keys: String, dialResult: DialStatus = .completed,
        queueResult: QueueResult = .bridged, longest: Duration = .seconds(4 * 3_600)
    ) {
        self.init(
            FlowCourse(first: first, values: values, isAnswered: false), keys: keys, dialResult: dialResult,
            queueResult: queueResult, longest: longest)
    }

    /// Prepares a call whose documents a server gives.
    ///
    /// - Parameters: As for one of files.
    public init(
        asking server: FlowServer, values: FlowValues, keys: String, dialResult: DialStatus = .completed,
        queueResult: QueueResult = .bridged, longest: Duration = .seconds(4 * 3_600)
    ) {
        self.init(
            FlowCourse(asking: server, values: values, isAnswered: false), keys: keys, dialResult: dialResult,
            queueResult: queueResult, longest: longest)
    }

    private init(
        _ course: FlowCourse, keys: String, dialResult: DialStatus, queueResult: QueueResult, longest: Duration
    ) {
        self.course = course
        self.queueResult = queueResult
        self.dialResult = dialResult
        self.keys = Array(keys)[...]
        self.longest = longest
    }

    /// Runs the call to its end.
    ///
    /// - Parameters:
    ///   - document: Reads a document.
    ///   - page: Asks a server for one.
    ///   - length: How long a sound lasts.
    ///   - note: Takes what happens, with the time since the call came in.
    public mutating func run(
        document: (FlowFileName) -> Result<FlowDocument, FlowUnusable>,
        page: (FlowRequest) -> Result<FlowPage, FlowUnusable> = { _ in .failure(FlowUnusable("there is no server")) },
        length: (FlowSound) -> Result<Duration, FlowUnusable>, note: (Duration, Note) -> Void
    ) -> End {
        var inputs: [FlowCourse.Input] = [.begin]
        while true {
            if let input = inputs.first {
                inputs.removeFirst()
                var outbox: [FlowCourse.Output] = []
                course.handle(input, at: now, into: &outbox)
                for output in outbox {
                    note(Instant.zero.duration(to: now), .output(output))
                    inputs += carryOut(output, document, page, length, note)
                }
                if let end { return end }
            } else if let next = nextInput(note) {
                inputs = [next]
            } else {
                return .tooLong
            }
        }
    }

    private mutating func carryOut(
        _ output: FlowCourse.Output, _ document: (FlowFileName) -> Result<FlowDocument, FlowUnusable>,
        _ page: (FlowRequest) -> Result<FlowPage, FlowUnusable>,
        _ length: (FlowSound) -> Result<Duration, FlowUnusable>, _ note: (Duration, Note) -> Void
    ) -> [FlowCourse.Input] {
        switch output {
        case .reached, .fellBack, .fault, .fork, .endFork: return []
        case .openStream: streamEnd = now.advanced(by: Self.connectedTime)
        case .enqueue: return enqueue(note)
        case .leaveQueue(let result):
            note(Instant.zero.duration(to: now), .queueEnded(result))
            queueNext = nil
            return [.queueEnded(result, queuedSince.duration(to: now))]
        case .readyToJoin:
            note(Instant.zero.duration(to: now), .connected)
            queueNext = (.queueEnded(.bridged, queuedSince.duration(to: now)), now.advanced(by: Self.connectedTime))
            return [.queueJoined]
        case .request(let request, let number):
            switch page(request) {
            case .success(let page): return [.received(page, number: number)]
            case .failure(let fault): return [.requestFailed(fault, number: number)]
            }
        case .fetch(let name):
            switch document(name) {
            case .success(let document): return [.fetched(document)]
            case .failure(let fault):
                if fault.isMissing { note(Instant.zero.duration(to: now), .missing(name)) }
                return [.fetchFailed(fault)]
            }
        case .answer: return [.answered]
        case .play(let sound, let number):
            switch length(sound) {
            case .success(let time):
                if sound != .ringBack { note(Instant.zero.duration(to: now), .length(time)) }
                soundEnd = (number, now.advanced(by: time))
                return []
            case .failure(let fault): return [.soundFailed(number, fault.message)]
            }
        case .stopSound: soundEnd = nil
        case .record:
            recordedSince = now
            speechEnd = now.advanced(by: Self.speechTime)
            return [.speech(isOver: false)]
        case .stopRecording:
            speechEnd = nil
            note(Instant.zero.duration(to: now), .recorded(recordedSince.duration(to: now)))
            let length = recordedSince.duration(to: now)
            return [.recorded(FlowRecording(url: "file:///recording.wav", duration: length))]
        case .dial(let order): dial(order)
        case .connect:
            connectedSince = now
            dialNext = (.dialEnded(.completed, Self.connectedTime), now.advanced(by: Self.connectedTime))
        case .stopDialling(let isTimeout):
            let time = connectedSince?.duration(to: now)
            let status: DialStatus = time != nil ? .completed : isTimeout ? .noAnswer : .canceled
            dialNext = (.dialEnded(status, time ?? .zero), now)
        case .hangUp, .accept: end = .hungUp
        case .reject(let how): end = .rejected(how)
        case .fail(let failure): end = .failed(failure)
        }
        return []
    }

    private mutating func enqueue(_ note: (Duration, Note) -> Void) -> [FlowCourse.Input] {
        queuedSince = now
        let place = QueuePlace(sid: "QU-trial", position: 1, size: 1, most: 100, since: now, meanSince: now)
        switch queueResult {
        case .queueFull, .systemError, .hangup, .error:
            note(Instant.zero.duration(to: now), .queueEnded(queueResult))
            return [.queueEnded(queueResult, .zero)]
        case .bridged: queueNext = (.dequeued(by: "CA-agent", nil), now.advanced(by: Self.waitingTime))
        case .redirected:
            queueNext = (.queueEnded(.redirected, Self.waitingTime), now.advanced(by: Self.waitingTime))
        case .leave, .timeout:
            queueNext = (.queueEnded(.timeout, Self.longestWait), now.advanced(by: Self.longestWait))
        }
        note(Instant.zero.duration(to: now), .queued(place))
        return [.queued(place)]
    }

    private mutating func nextOfQueue(_ note: (Duration, Note) -> Void) -> FlowCourse.Input? {
        guard let next = queueNext, next.at <= now else { return nil }
        queueNext = nil
        if case .queueEnded(let result, _) = next.input {
            note(Instant.zero.duration(to: now), .queueEnded(result))
        } else {
            note(Instant.zero.duration(to: now), .taken)
        }
        return next.input
    }

    private mutating func dial(_ order: FlowDialOrder) {
        connectedSince = nil
        var wait = Self.ringingTime
        if case .room = order.destination { wait = .zero }
        switch dialResult {
        case .completed: dialNext = (.calleeAnswered, now.advanced(by: wait))
        case .busy: dialNext = (.dialEnded(.busy, .zero), now.advanced(by: wait))
        case .failed: dialNext = (.dialEnded(.failed, .zero), now)
        // The flow gives up at its timeout.
        case .noAnswer, .canceled: dialNext = nil
        }
    }

    private mutating func nextOfDial(_ note: (Duration, Note) -> Void) -> FlowCourse.Input? {
        guard let next = dialNext, next.at <= now else { return nil }
        dialNext = nil
        switch next.input {
        case .calleeAnswered: note(Instant.zero.duration(to: now), .connected)
        case .dialEnded(let status, _): note(Instant.zero.duration(to: now), .dialEnded(status))
        case .begin, .fetched, .fetchFailed, .received, .requestFailed, .answered, .soundEnded, .soundFailed, .key,
            .speech, .recorded, .recordingFailed, .calleeAsked, .handoverEnded, .queued, .dequeued, .requeued,
            .queueJoined, .queueEnded, .streamEnded, .forkEnded, .timerFired:
            break
        }
        return next.input
    }

    /// What happens next, to whose time the clock is moved; nil if the call is too long by then.
    private mutating func nextInput(_ note: (Duration, Note) -> Void) -> FlowCourse.Input? {
        if course.awaitsKey, !keys.isEmpty {
            keyAt = keyAt ?? now.advanced(by: Self.keyTime)
        } else {
            keyAt = nil
        }
        let times = [
            soundEnd?.at, keyAt, speechEnd, dialNext?.at, queueNext?.at, streamEnd, course.nextDeadline,
        ].compactMap(\.self)
        guard let next = times.min(), Instant.zero.duration(to: next) <= longest else { return nil }
        now = max(now, next)
        if let input = nextOfDial(note) ?? nextOfQueue(note) { return input }
        if let time = streamEnd, time <= now {
            streamEnd = nil
            note(Instant.zero.duration(to: now), .streamEnded)
            return .streamEnded(FlowStreamEnd(sid: "MZ-trial"))
        }
        if let sound = soundEnd, sound.at <= now {
            soundEnd = nil
            return .soundEnded(sound.number)
        }
        if let time = speechEnd, time <= now {
            speechEnd = nil
            return .speech(isOver: true)
        }
        if let time = keyAt, time <= now, let key = keys.popFirst() {
            keyAt = nil
            note(Instant.zero.duration(to: now), .key(key))
            return .key(key)
        }
        return .timerFired
    }
}
