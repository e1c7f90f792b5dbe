// CallFlows: calls that follow a flow in TwiML: its files or server, its voice, its recordings, and the thread that moves their sound.

public import AudioPort
internal import BotWire
public import CallControl
public import CallFlow
public import CallParticipation
internal import CallWebhooks
internal import CallSounds
internal import Synchronization

/// Which flow calls follow.
public struct FlowPlan: Sendable, Equatable {
    /// Where documents come from.
    public enum Source: Sendable, Equatable {
        /// The first document; all others are in its folder and below.
        case file(String)
        /// A server, which answers each step with a document.
        case server(FlowServerPlan)
    }

    /// Where documents come from.
    public let source: Source
    /// The command that speaks the texts of Say, and its arguments: it reads a text and writes a WAV. Empty without one.
    public var voice: [String] = []
    /// The folder for recordings; nil if none are made.
    public var recordFolder: String?
    /// Hosts to which documents of files may stream a call's sound: names, addresses, and `*.example.org`. A server's plan has its own.
    public var streamHosts: [String] = []
    /// PEM certificates to trust besides the system's; a server's plan has its own.
    public var trustRoots: String?
    /// Variables of this process that hold its secrets, and that the voice does not inherit.
    public var withheldVariables: Set<String> = []

    /// How long an incoming call waits at most until the flow answers it: the time that a flow has, and some for its files.
    public static let answerTimeout = Duration.seconds(35)

    /// Makes a plan of a flow in files, with its first document.
    public init(file: String) { source = .file(file) }

    /// Makes a plan of a flow that a server gives.
    public init(server: FlowServerPlan) { source = .server(server) }
}

/// Names of a call that follows a flow.
public struct FlowCallNames: Sendable, Equatable {
    /// `{{CallSid}}` in its documents.
    public let callSid: String
    /// The name of its first recording's file, without an ending.
    public let recording: String

    /// Makes names.
    public init(callSid: String, recording: String) {
        self.callSid = callSid
        self.recording = recording
    }
}

/// What flows order of their device, beside events.
public enum FlowOrder: Sendable, Equatable {
    /// Call callees for the caller, or take it into a room. ``FlowDialReport/ended(_:_:)`` follows in any case.
    case dial(CallID, FlowDialOrder)
    /// Join the caller to the callee that has answered.
    case connect(CallID)
    /// End the calls that were dialled for the caller.
    case stopDialling(CallID, isTimeout: Bool)
    /// The callee accepts, which was asked.
    case accepted(CallID)
    /// Put the caller into a queue, with music unless it goes through a document. ``FlowQueueReport/ended(_:_:)`` follows in any case.
    case enqueue(CallID, String, hasMusic: Bool)
    /// Take the caller out of its queue.
    case leaveQueue(CallID, QueueResult)
    /// Join the caller to the call that takes it from its queue in this attempt.
    case readyToJoin(CallID, attempt: Int)
}

/// What becomes of a flow's caller in a queue.
public enum FlowQueueReport: Sendable, Equatable {
    /// It is in the queue, or has another place there now.
    case placed(QueuePlace)
    /// The call that was about to take it is gone.
    case returned
    /// It is joined to the call that has taken it.
    case joined
    /// The end, with the time for which it has waited.
    case ended(QueueResult, Duration)
}

/// What has become of what a flow has dialled.
public enum FlowDialReport: Sendable, Equatable {
    /// A callee has answered, and is asked whether it accepts.
    case asked
    /// A callee can be joined to the caller, or the caller is in its room.
    case answered
    /// The end, with the time for which the caller was joined.
    case ended(DialStatus, Duration)
}

/// What a callee goes through that is asked whether it accepts.
struct AskedCallee: Sendable {
    let document: FlowAddress
    /// That of the caller's flow.
    let origin: FlowOrigin
    /// Those of the caller's flow.
    let values: FlowValues
}

/// The calls of a device that follow a flow, and the one thread that moves their sound.
///
/// Documents and sounds are read, texts spoken, and recordings written on other threads, so that no disk and no voice delays a call.
/// All methods may be called from any thread.
public final class CallFlows: CallParticipant {
    /// A flow.
    public let kind = ParticipantKind.flow
    /// Until the flow answers it.
    public let delaysAnswer = true
    private let publish: @Sendable (ParticipantEvent) -> Void
    private let order: @Sendable (FlowOrder) -> Void
    private let name: @Sendable (ParticipantCall) -> FlowCallNames
    private let plan: Mutex<(plan: FlowPlan, link: FlowServerLink?)>
    private let streams: FlowStreams
    private let voice = FlowVoice()
    private let runs = CallRuns<FlowRun>(threadName: "flows")
    private let lines = HeldLines()
    /// Placed calls whose callees are asked whether they accept, before they begin.
    private let asked = Mutex<[CallID: AskedCallee]>([:])

    /// Prepares for flows; the thread starts with the first.
    ///
    /// - Parameters:
    ///   - name: Names a call that begins.
    ///   - publish: Receives the events, on the flows' thread.
    ///   - order: Receives what flows order of the device's calls, likewise.
    ///   - streams: Makes what connects calls with bots and servers that hear, when the first call needs it; nil for flows without streams.
    public init(
        _ plan: FlowPlan, name: @escaping @Sendable (ParticipantCall) -> FlowCallNames,
        publish: @escaping @Sendable (ParticipantEvent) -> Void,
        order: @escaping @Sendable (FlowOrder) -> Void = { _ in },
        streams: (@Sendable (FlowStreamTargets) -> any CallStreams)? = nil
    ) {
        self.order = order
        self.streams = FlowStreams(plan, streams)
        self.plan = Mutex((plan: plan, link: Self.link(to: plan, publish)))
        self.name = name
        self.publish = publish
    }

    /// Applies another plan to calls that begin from now on.
    public func adopt(_ plan: FlowPlan) {
        self.plan.withLock { own in
            if own.plan.source != plan.source {
                own.link?.retire()
                own.link = Self.link(to: plan, publish)
            }
            own.plan = plan
        }
        streams.adopt(plan)
    }

    private static func link(
        to plan: FlowPlan, _ publish: @escaping @Sendable (ParticipantEvent) -> Void
    ) -> FlowServerLink? {
        guard case .server(let server) = plan.source else { return nil }
        return FlowServerLink(server) { publish(.noted(.warned($0, leftOut: $1), nil)) }
    }

    /// Begins the flow of a call.
    public func begin(_ call: ParticipantCall) throws {
        let (plan, link) = self.plan.withLock { $0 }
        let asked = asked.withLock { $0.removeValue(forKey: call.id) }
        let signal = try runs.start()
        let origin = try asked?.origin ?? Self.origin(of: plan, link)
        origin.enter()
        // The caller is recorded at 16 kHz, and hears the files at 48 kHz.
        let pair = AudioPort.pair(rate: .hz16000, signal: signal, turns: TurnPlan(.off))
        let run = FlowRun(
            plan, origin, voice, call, name(call), streams, asked: asked, port: pair.port, publish: publish,
            order: order,
            wake: { signal.signal() })
        lines.hold(pair.line, of: call.id)
        runs.begin(run)?.post(.end)
    }

    private static func origin(of plan: FlowPlan, _ link: FlowServerLink?) throws(FlowUnusable) -> FlowOrigin {
        if let link { return .server(link) }
        guard case .file(let file) = plan.source else { throw FlowUnusable("the flow's server is not set up") }
        return .folder(try FlowFolder(file: file))
    }

    /// The line of a call's flow, once; nil if the call has none.
    public func attach(to call: CallID) -> PortLine? { lines.take(of: call) }

    /// Gives the flow a key.
    public func sendDigit(_ digit: Character, heldFor time: Duration, to call: CallID) {
        run(of: call)?.post(.course(.key(digit)))
    }

    /// Reports to a caller's flow what has become of what it has dialled.
    public func report(_ report: FlowDialReport, to caller: CallID) {
        switch report {
        case .asked: run(of: caller)?.post(.course(.calleeAsked))
        case .answered: run(of: caller)?.post(.course(.calleeAnswered))
        case .ended(let status, let time): run(of: caller)?.post(.course(.dialEnded(status, time)))
        }
    }

    /// Reports to a caller's flow what becomes of it in its queue.
    public func report(_ report: FlowQueueReport, to caller: CallID) {
        switch report {
        case .placed(let place): run(of: caller)?.post(.course(.queued(place)))
        case .returned: run(of: caller)?.post(.course(.requeued))
        case .joined: run(of: caller)?.post(.course(.queueJoined))
        case .ended(let result, let time): run(of: caller)?.post(.course(.queueEnded(result, time)))
        }
    }

    /// Has the caller of a queue go through a document of the flow of the call that takes it, if there is one.
    /// ``FlowOrder/readyToJoin(_:attempt:)`` follows, with the same attempt.
    ///
    /// - Parameter flows: Where the flow of that call is; nil if it has none.
    public func call(
        _ caller: CallID, by taker: CallID, in flows: CallFlows?, through whisper: FlowWhisper?, attempt: Int
    ) {
        let run = flows?.run(of: taker)
        self.run(of: caller)?.post(.called(by: run?.values.callSid ?? "", whisper, run?.origin, attempt: attempt))
    }

    /// Has a callee that was placed for a caller go through a document of the caller's flow when it answers.
    /// ``FlowOrder/accepted(_:)`` follows if it reaches the end of one.
    public func ask(_ callee: CallID, by document: FlowAddress, for caller: CallID) {
        guard let run = run(of: caller) else { return }
        let asked = AskedCallee(document: document, origin: run.origin, values: run.values)
        self.asked.withLock { $0[callee] = asked }
    }

    /// Does nothing: a flow transfers no call.
    public func noteTransfer(to target: UserID, _ progress: CallTransfer.Progress, of call: CallID) {}

    /// Notifies the flow of a hand-over from which its caller is back, with how it has ended.
    public func noteHandover(_ report: HandoverReport, of call: CallID) {
        guard report.state.returnsCaller else { return }
        run(of: call)?.post(.course(.handoverEnded(report.state.rawValue)))
    }

    /// Does nothing: a flow requests nothing that can be refused.
    public func refuse(_ request: ParticipantRequest, of call: CallID, _ why: String) {}

    /// Plays what the flow has given to the call so far.
    public func hearOut(_ call: CallID) { run(of: call)?.post(.hearOut) }

    /// Ends the flow of a call. A recording that was made until now is kept.
    public func end(_ call: CallID, _ end: ParticipationEnd) {
        lines.drop(of: call)
        asked.withLock { $0[call] = nil }
        let run = runs.remove(call)
        switch end {
        case .callEnded(let record): run?.post(.callEnded(TwilioWebhook.Status(record)))
        // The call continues without its flow, and its end is no longer reported.
        case .detached: break
        }
        if let run { run.post(.end) } else { publish(.left(call)) }
    }

    /// Ends all flows and the thread.
    public func finish() async {
        runs.finish { $0.post(.end) }
        await streams.finish()
        await plan.withLock { $0.link }?.finish()
    }

    private func run(of call: CallID) -> FlowRun? { runs.run(of: call) }
}
