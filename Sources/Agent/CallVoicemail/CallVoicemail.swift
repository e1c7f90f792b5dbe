// CallVoicemail: calls in which callers leave messages: the folder of a mailbox, the recordings, and what follows on a new message.

public import AudioPort
public import CallControl
public import CallParticipation
internal import CallSounds
internal import Synchronization
public import Voicemail

/// Where calls leave messages.
public struct VoicemailPlan: Sendable, Equatable {
    /// The folder of the messages.
    public var folder: String
    /// What callers hear before the tone: WAV or Ogg Opus; nil: the tone alone.
    public var greeting: String?
    /// What the mailbox has room for.
    public var bounds = VoicemailBounds()
    /// The command for each new message, and its arguments; empty without one.
    public var command: [String] = []
    /// How its owners hear the messages by telephone; nil if they cannot.
    public var menu: MenuPlan?
    /// Who is notified of what waits there.
    public var notices = VoicemailNotices()
    /// Variables of this process that hold its secrets, and that the command does not inherit.
    public var withheldVariables: Set<String> = []

    /// How long an incoming call waits at most until the mailbox answers it: the time that its disk has, and some more.
    public static let answerTimeout = VoicemailCourse.admissionTime + .seconds(3)

    /// Makes a plan.
    public init(folder: String) { self.folder = folder }
}

/// Who is notified of what waits in a mailbox, by a SIP server (RFC 3842).
public struct VoicemailNotices: Sendable, Hashable {
    /// The users who may ask to be notified.
    public var subscribers: [CalleePattern] = []
    /// The users who are notified without asking.
    public var targets: [UserID] = []

    /// Notifies no others.
    public init() {}

    /// Whether no others are notified.
    public var isEmpty: Bool { subscribers.isEmpty && targets.isEmpty }
}

/// A message's names, which are made when its call begins.
public struct VoicemailNames: Sendable, Equatable {
    /// The name of its file, without an ending: it ends with `_` and the id.
    public let stem: String
    /// Letters and digits.
    public let id: String
    /// When the call came, in UTC (RFC 3339).
    public let received: String

    /// Makes names.
    public init(stem: String, id: String, received: String) {
        self.stem = stem
        self.id = id
        self.received = received
    }
}

/// The calls of a device that leave messages, and those of owners who hear them; one thread for each kind moves their sound.
///
/// The room for a message is kept before the call is answered, so a full mailbox rejects it as busy. Files are read and written, and
/// commands run, on other threads. All methods may be called from any thread.
public final class CallVoicemail: CallParticipant {
    /// A mailbox.
    public let kind = ParticipantKind.mailbox
    /// Until there is room for a message.
    public let delaysAnswer = true
    /// Owners enter a PIN. Also without a menu, which a reload may take away while they do.
    public let keepsKeys = true
    private let publish: @Sendable (ParticipantEvent) -> Void
    private let name: @Sendable (ParticipantCall) -> VoicemailNames
    private let plan: Mutex<VoicemailPlan>
    private let keeper: VoicemailKeeper
    private let isOwner: @Sendable (ParticipantCall, [CalleePattern]) -> Bool
    private let runs = CallRuns<VoicemailRun>(threadName: "voicemail")
    private let menus = CallRuns<MenuRun>(threadName: "voicemail menu")
    private let shared: MenuRun.Shared
    private let lines = HeldLines()

    /// Prepares for messages; the thread starts with the first call.
    ///
    /// - Parameters:
    ///   - name: Names the message of a call that begins.
    ///   - isOwner: Whether the caller is one that these patterns mean.
    ///   - publish: Receives the events, on any thread.
    public init(
        _ plan: VoicemailPlan, name: @escaping @Sendable (ParticipantCall) -> VoicemailNames,
        isOwner: @escaping @Sendable (ParticipantCall, [CalleePattern]) -> Bool = { _, _ in false },
        publish: @escaping @Sendable (ParticipantEvent) -> Void
    ) {
        self.plan = Mutex(plan)
        self.name = name
        self.isOwner = isOwner
        self.publish = publish
        let attempts = PINAttemptsKeeper()
        shared = MenuRun.Shared(voice: MenuVoice(), attempts: attempts, publish: publish)
        keeper = VoicemailKeeper(publish: publish)
    }

    /// Applies another plan to calls that begin from now on. Makes messages of what a killed process has left in another folder.
    public func adopt(_ plan: VoicemailPlan) {
        let isElsewhere = self.plan.withLock { current in
            defer { current = plan }
            return current.folder != plan.folder
        }
        if isElsewhere { Task { await recover() } }
    }

    /// Makes messages of what a process has left that was killed, and reports them.
    public func recover() async { await keeper.recover(plan.withLock { $0 }) }

    /// Begins to take a message.
    public func begin(_ call: ParticipantCall) throws {
        let plan = plan.withLock { $0 }
        if let menu = plan.menu, !call.isOutgoing, isOwner(call, menu.owners) { return try begin(call, plan, menu) }
        let signal = try runs.start()
        let pair = AudioPort.pair(rate: .hz16000, signal: signal, turns: TurnPlan(.off))
        let run = VoicemailRun(
            plan, keeper, call, name(call), port: pair.port, publish: publish, wake: { signal.signal() })
        lines.hold(pair.line, of: call.id)
        runs.begin(run)?.post(.end)
    }

    private func begin(_ call: ParticipantCall, _ plan: VoicemailPlan, _ menu: MenuPlan) throws {
        let signal = try menus.start()
        let pair = AudioPort.pair(rate: .hz16000, signal: signal, turns: TurnPlan(.off))
        let run = MenuRun(plan, menu, call, shared, port: pair.port, wake: { signal.signal() })
        lines.hold(pair.line, of: call.id)
        menus.begin(run)?.post(.end)
    }

    /// The line of a call's mailbox, once; nil if the call has none.
    public func attach(to call: CallID) -> PortLine? { lines.take(of: call) }

    /// Gives the mailbox a key.
    public func sendDigit(_ digit: Character, heldFor time: Duration, to call: CallID) {
        runs.run(of: call)?.post(.course(.key(digit)))
        menus.run(of: call)?.post(.menu(.key(digit)))
    }

    /// Does nothing: a mailbox transfers no call.
    public func noteTransfer(to target: UserID, _ progress: CallTransfer.Progress, of call: CallID) {}

    /// Has the message wait while the call is handed over, and continue when the caller is back.
    public func noteHandover(_ report: HandoverReport, of call: CallID) {
        switch report.state {
        case .asked: runs.run(of: call)?.post(.course(.paused))
        case let state where state.returnsCaller: runs.run(of: call)?.post(.course(.resumed))
        case .ringing, .whispering, .accepted, .joined, .refused, .busy, .noAnswer, .gone, .failed, .cancelled, .ended:
            return
        }
    }

    /// Does nothing: a mailbox requests nothing that can be refused.
    public func refuse(_ request: ParticipantRequest, of call: CallID, _ why: String) {}

    /// Ends the message, which is kept, and plays what the call was given so far.
    public func hearOut(_ call: CallID) {
        runs.run(of: call)?.post(.hearOut)
        menus.run(of: call)?.post(.hearOut)
    }

    /// Ends the message of a call, which is kept.
    public func end(_ call: CallID, _ end: ParticipationEnd) {
        lines.drop(of: call)
        if let run = runs.remove(call) { return run.post(.end) }
        if let menu = menus.remove(call) { return menu.post(.end) }
        publish(.left(call))
    }

    /// The time that saving, and the commands of new messages, have once the device ends; its process has two seconds in all.
    private static let lastCommands = Duration.seconds(1)

    /// Ends all messages, which are kept, and the thread. Waits for the disk, and for commands that run.
    public func finish() async {
        runs.finish { $0.post(.end) }
        menus.finish { $0.post(.end) }
        await keeper.finish(within: Self.lastCommands)
    }
}
