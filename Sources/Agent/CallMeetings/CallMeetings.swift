public import AudioPort
public import CallControl
public import CallParticipation
internal import Synchronization

/// Which room calls join.
public struct MeetingPlan: Sendable, Equatable {
    /// The room's name; nil: the name of the device's user, which is the address that the callers have called.
    public var room: String?
    /// Whether a tone is heard when a member joins or leaves. That of the member who opens the room counts.
    public var hasTones = true
    /// Members that the room may have.
    public var mostMembers = MeetingPlan.usualMembers

    /// The usual limit of a room.
    public static let usualMembers = 50
    /// The most that may be configured.
    public static let mostMembers = 250

    /// How long an incoming call waits at most for its place, which it gets at once.
    public static let answerTimeout = Duration.seconds(5)

    /// Makes a plan.
    public init() {}
}

/// The calls of a device that are members of rooms.
///
/// An incoming call gets its place before it is answered, so a full room rejects it as busy. All methods may be called from any thread.
public final class CallMeetings: CallParticipant {
    /// A meeting.
    public let kind = ParticipantKind.meeting
    /// Until it has a place.
    public let delaysAnswer = true
    private let hall: MeetingHall
    private let plan: Mutex<MeetingPlan>
    private let publish: @Sendable (ParticipantEvent) -> Void
    private let lines = HeldLines()
    private let calls = Mutex<Set<CallID>>([])

    /// Prepares for calls.
    ///
    /// - Parameter publish: Receives the events, on any thread.
    public init(
        _ plan: MeetingPlan, in hall: MeetingHall, publish: @escaping @Sendable (ParticipantEvent) -> Void
    ) {
        self.plan = Mutex(plan)
        self.hall = hall
        self.publish = publish
    }

    /// Applies another plan to calls that begin from now on.
    public func adopt(_ plan: MeetingPlan) { self.plan.withLock { $0 = plan } }

    /// Takes the call into its room, or rejects it as busy if there is no place.
    public func begin(_ call: ParticipantCall) throws {
        let (plan, id, publish) = (plan.withLock { $0 }, call.id, publish)
        let room = plan.room ?? call.own?.text ?? "conference"
        hall.leave(id.number)
        do throws(MeetingRefusal) {
            let line = try hall.join(id.number, room: room, most: plan.mostMembers, hasTones: plan.hasTones) { report in
                switch report {
                case .entered(let members): publish(.noted(.met(room: room, members: members), id))
                case .speech(let isOver, let at): publish(.speech(id, isOver: isOver, at: at))
                }
            }
            calls.withLock { _ = $0.insert(id) }
            lines.hold(line, of: id)
        } catch {
            guard !call.isAnswered else { throw error }
            return publish(.rejected(id, .busy, error.description))
        }
        if !call.isAnswered { publish(.ready(id)) }
    }

    /// The line of the call's seat, once; nil if the call has none.
    public func attach(to call: CallID) -> PortLine? { lines.take(of: call) }

    /// Does nothing: keys are events of the device.
    public func sendDigit(_ digit: Character, heldFor time: Duration, to call: CallID) {}

    /// Does nothing: a meeting transfers no call.
    public func noteTransfer(to target: UserID, _ progress: CallTransfer.Progress, of call: CallID) {}

    /// Does nothing: a meeting requests nothing that can be refused.
    public func refuse(_ request: ParticipantRequest, of call: CallID, _ why: String) {}

    /// Removes the call from its room at once; there are no last words.
    public func hearOut(_ call: CallID) {
        guard leave(call) else { return }
        hall.afterReports { [publish] in publish(.done(call, failure: nil)) }
    }

    /// Removes the call from its room.
    public func end(_ call: CallID, _ end: ParticipationEnd) {
        _ = leave(call)
        // Behind the call's last reports.
        hall.afterReports { [publish] in publish(.left(call)) }
    }

    /// - Returns: Whether the call was in a room.
    private func leave(_ call: CallID) -> Bool {
        lines.drop(of: call)
        guard calls.withLock({ $0.remove(call) }) != nil else { return false }
        hall.leave(call.number)
        return true
    }

    /// Removes all calls of the device.
    public func finish() {
        for call in calls.withLock({ $0 }) { _ = leave(call) }
    }
}
