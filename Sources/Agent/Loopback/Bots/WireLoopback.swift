// Bots: has a measuring caller speak with a bot, over the bot's wire or through a call.

internal import AudioKit
internal import AudioPort
public import BotCalls
public import BotProbe
internal import BotWire
internal import CallControl
internal import CallParticipation
internal import Glibc
internal import Realtime
internal import Synchronization
internal import Core

/// A bot could not be called.
public struct BotUnreachable: Error, Sendable, CustomStringConvertible {
    /// Whether its server has refused the call, and not just failed.
    public let isRefusal: Bool
    /// What was done, and what went wrong.
    public let description: String
}

/// What a measurement over a wire has come to.
public struct WireRecording: Sendable {
    /// What the caller said and heard.
    public var recording: ProbeRecording
    /// Why the connection failed; nil if it did not.
    public var failure: String?
    /// Messages of the bot that could not be followed, as in the log.
    public var misunderstood = 0
    /// By how much the measuring program was late at most.
    public var longestDelay: Duration
}

/// A measuring caller that is directly at a bot's wire, as a device in a call would be.
public enum WireLoopback {
    /// Samples of a frame: 20 ms.
    static let frameSamples = AudioFormat.samples(milliseconds: 20)
    private static let call = CallID(number: 1)

    /// Connects with a bot, and has a caller speak with it until the caller is done, the bot hangs up, or it must stop.
    public static func measure(
        _ plan: BotPlan, _ probe: BotProbe, mustStop: @escaping @Sendable () -> Bool
    ) async throws -> WireRecording {
        let (events, sink) = AsyncStream.makeStream(of: ParticipantEvent.self)
        // Only plans with credentials for that place calls, and only those with media have legs.
        let bots = BotCalls(plan, mayTransfer: { _ in false }, publish: { sink.yield($0) }, order: { _ in })
        bots.begin(
            ParticipantCall(
                call, peer: "caller", own: "bot", isOutgoing: false, isAnswered: false))
        var clock: FrameClock?
        var thread: RealtimeThread?
        var (failure, misunderstood): (String?, Int) = (nil, 0)
        var refusal: BotUnreachable?
        events: for await event in events {
            switch event {
            case .ready where clock == nil:
                guard let line = try bots.attach(to: call) else { break }
                let made = FrameClock(line, probe) { key in
                    bots.sendDigit(key, heldFor: .milliseconds(100), to: call)
                }
                clock = made
                thread = try RealtimeThread(name: "bot-probe") {
                    made.run(mustStop: mustStop)
                    sink.finish()
                }
            case .rejected(_, _, let why):
                refusal = Self.unreachable(plan, isRefusal: true, why)
                break events
            case .failed(_, let why):
                refusal = Self.unreachable(plan, isRefusal: false, why)
                break events
            case .done(_, let why):
                failure = why
                clock?.hangUp()
            case .noted(.misunderstood(_, let leftOut), _): misunderstood += 1 + leftOut
            case .ready, .noted, .press, .turn, .speech, .left: break
            // A measurement has no caller to transfer.
            case .handover: bots.refuse(.handover, of: call, "there is no call to hand over")
            case .cancelHandover: bots.refuse(.cancelHandover, of: call, "there is no call to hand over")
            case .transfer: bots.refuse(.transfer, of: call, "there is no call to transfer")
            }
        }
        thread?.join()
        bots.end(call, .detached)
        await bots.finish()
        if let refusal { throw refusal }
        guard let clock else {
            throw BotUnreachable(isRefusal: false, description: "the bot at \(plan.addressText) was not reached")
        }
        return WireRecording(
            recording: clock.recording, failure: failure, misunderstood: misunderstood,
            longestDelay: clock.longestDelay)
    }
}

extension WireLoopback {
    private static func unreachable(_ plan: BotPlan, isRefusal: Bool, _ why: String?) -> BotUnreachable {
        BotUnreachable(
            isRefusal: isRefusal,
            description: "the bot at \(plan.addressText) cannot be called: \(why ?? "it declines")")
    }
}

/// Runs the frames of a call that has no other end: the caller's, and the bot's line.
private final class FrameClock: @unchecked Sendable {
    // The thread that runs has the line and the caller to itself; what it leaves is read once it has ended.
    private var line: PortLine
    private var probe: BotProbe
    private let press: (Character) -> Void
    private let hasHungUp = Atomic<Bool>(false)
    private(set) var longestDelay = Duration.zero

    init(_ line: consuming PortLine, _ probe: BotProbe, press: @escaping (Character) -> Void) {
        self.line = line
        self.probe = probe
        self.press = press
        // What a frame has was said before the frame is sent.
        self.probe.setSendingDelay(-WireLoopback.frameSamples)
    }

    var recording: ProbeRecording { probe.recording }

    func hangUp() { hasHungUp.store(true, ordering: .releasing) }

    func run(mustStop: () -> Bool) {
        // Without permission this is an ordinary thread, and what it does late is withheld.
        try? RealtimeThread.makeCurrentRealtime(priority: callerPriority)
        let frame = Duration.milliseconds(20)
        var deadline = MonotonicClock.now
        var said = [Int16](repeating: 0, count: WireLoopback.frameSamples)
        while !mustStop() {
            var heard = [Int16](repeating: 0, count: said.count)
            var room = heard.mutableSpan
            line.exchange(received: said.span, sending: &room)
            if hasHungUp.load(ordering: .acquiring) { probe.hangUp() }
            let step = probe.exchange(heard)
            if let key = step.key { press(key) }
            if step.isOver { break }
            said = step.samples
            deadline = deadline.advanced(by: frame)
            let wait = MonotonicClock.now.nanoseconds(to: deadline)
            if wait > 0 {
                usleep(UInt32(wait / 1_000))
            } else if -wait > frame.nanoseconds / 2 {
                probe.noteSlip()
            }
            longestDelay = max(longestDelay, .nanoseconds(max(0, -MonotonicClock.now.nanoseconds(to: deadline))))
        }
        line.finish()
    }
}
