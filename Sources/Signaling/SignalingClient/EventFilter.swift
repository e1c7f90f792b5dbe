internal import CallControl
internal import SignalWire

/// Decides which events of the exchange reach the application: each once, and none that only repeats what it knows.
struct EventFilter {
    private let device: DeviceID
    /// The number of the newest event that was published, in the session's numbering.
    private var newest: Int64 = 0
    /// This device's own in rooms.
    private var connection: ConnectionName?
    private var rooms = RoomTable()

    init(device: DeviceID) { self.device = device }

    /// How each room that the device is in was joined.
    var joins: [RoomJoin] { rooms.joins }

    /// A session begins, or resumes. The numbers of a new session begin after `sequence`.
    mutating func begin(_ grant: SessionGrant) {
        connection = grant.connection
        if !grant.isResumed { newest = grant.sequence }
    }

    /// Whether the event of this number is new, and not a repetition after a reconnection (CONN-5). It is noted.
    mutating func isNew(_ sequence: Int64) -> Bool {
        guard sequence > newest else { return false }
        newest = sequence
        return true
    }

    /// Whether the application receives an event.
    mutating func passes(_ event: SignalingEvent) -> Bool {
        if case .inviteHandled(let handling) = event, handling.device == device {
            return false  // This device's own answer (INV-17).
        }
        if case .connectionDestroyed(let room, let name, _) = event, name == connection {
            // The exchange's operator has taken it out, so it does not join again by itself.
            rooms.leave(room)
            return true
        }
        return rooms.note(event)
    }

    /// The device has joined a room, see ``RoomTable/enter(_:_:isLast:)``.
    mutating func enter(_ join: RoomJoin, _ result: RoomJoin.Result) -> [SignalingEvent] {
        rooms.enter(join, result.participants.map(CallControl.RoomParticipant.init), isLast: result.next == nil)
    }

    /// The device has left a room.
    mutating func leave(_ room: RoomName) { rooms.leave(room) }

    /// The device is in no room any more.
    mutating func leaveAllRooms() { rooms = RoomTable() }
}
