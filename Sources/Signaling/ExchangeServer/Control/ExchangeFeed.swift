import ControlPlane
import ControlWire
import ExchangeCore
import HTTPTransport
import Realtime
import SignalWire
import Synchronization

/// Brings what happens in an exchange from its event loop to the history of events, which the control interface's thread writes.
///
/// Capacity: ``capacity`` events. If the thread does not keep up, further ones are lost and counted, and clients receive `events_lost`.
final class ExchangeFeed: Sendable {
    /// Events that wait: as many as the history keeps, so that no client misses more by this than by being late.
    static let capacity = 10_000

    private struct State {
        var waiting: [(happening: ExchangeHappening, milliseconds: Int64)] = []
        var lost = 0
        /// Of the lost ones, those that no client has been notified of.
        var unreported = 0
    }

    private let state = Mutex(State())
    private let store: EventStore
    private let door: LoopDoor

    /// - Parameter door: To the control interface's event loop.
    init(_ store: EventStore, through door: LoopDoor) {
        self.store = store
        self.door = door
    }

    /// Events that were lost since the start.
    var lost: Int { state.withLock { $0.lost } }

    /// Adds what has happened. On the exchange's event loop, which it does not hold up.
    func add(_ note: ExchangeNote) {
        guard let happening = ExchangeHappening(note) else { return }
        let time = MonotonicClock.wallNanoseconds / 1_000_000
        let isFirst = state.withLock { state in
            guard state.waiting.count < Self.capacity else {
                state.lost += 1
                state.unreported += 1
                return false
            }
            state.waiting.append((happening, time))
            return state.waiting.count == 1
        }
        if isFirst { door.execute { self.drain() } }
    }

    /// Moves what waits to the history. On the control interface's loop.
    func drain() {
        let (waiting, unreported) = state.withLock { state in
            defer { (state.waiting, state.unreported) = ([], 0) }
            return (state.waiting, state.unreported)
        }
        for (happening, time) in waiting { store.add(happening.line(atMilliseconds: time)) }
        guard unreported > 0, let time = waiting.last?.milliseconds else { return }
        var happening = ExchangeHappening(.eventsLost)
        happening.count = unreported
        store.add(happening.line(atMilliseconds: time))
    }
}

extension ExchangeHappening {
    /// What clients learn of a note; nil for what is in the log alone.
    init?(_ note: ExchangeNote) {
        switch note {
        case .sessionStarted(let endpoint, _, let resumed):
            self.init(.login, endpoint)
            self.resumed = resumed
        case .sessionEnded(let endpoint, _): self.init(.logout, endpoint)
        case .sessionLost(let endpoint, _): self.init(.connectionLost, endpoint)
        case .inviteSent(let invite, let inviter, let invitees):
            self.init(.invite)
            (self.invite, from, device) = (invite.text, inviter.user.text, inviter.device.text)
            to = invitees.map(\.text)
        case .inviteAnswered(let invite, let endpoint, let action):
            switch action {
            case .accepted: self.init(.callStarted, endpoint)
            case .rejected:
                self.init(.inviteEnded, endpoint)
                reason = "rejected"
            }
            self.invite = invite.text
        case .inviteCancelled(let invite): self.init(invite, endedBecause: "cancelled")
        case .inviteTimedOut(let invite): self.init(invite, endedBecause: "timedOut")
        case .inviteGaveWay(let invite, let user):
            self.init(invite, endedBecause: "gaveWay")
            self.user = user.text
        case .callEnded(let invite, let parties, let reason, let milliseconds):
            self.init(.callEnded)
            (self.invite, users, self.reason, duration) = (invite.text, parties.map(\.text), reason, milliseconds)
        case .loginEnded(let user, let cause):
            self.init(.loginEnded)
            (self.user, reason) = (user.text, cause.rawValue)
        case .participantRemoved(let room, let endpoint):
            self.init(.removed, endpoint)
            self.room = room.text
        case .memberRemoved(let group, let user):
            self.init(.removed)
            (self.group, self.user) = (group.text, user.text)
        case .moveRequested(let endpoint, _): self.init(.moveRequested, endpoint)
        // What an operator ends times out, and a session whose token ends loses its connection.
        case .inviteEndedByOperator, .tokenExpired, .connectionRefused, .pushMade, .pushFailed, .pushDied: return nil
        }
    }

    private init(_ kind: Kind, _ endpoint: Endpoint) {
        self.init(kind)
        (user, device) = (endpoint.user.text, endpoint.device.text)
    }

    private init(_ invite: InviteID, endedBecause reason: String) {
        self.init(.inviteEnded)
        (self.invite, self.reason) = (invite.text, reason)
    }
}
