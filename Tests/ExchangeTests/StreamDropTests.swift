@testable import ExchangeCore
import JSON
import SignalSupport
import SignalWire
import Testing
import Core

/// Alice and Bob are in a call and, with Carol, in a room.
private struct Meeting {
    var exchange = ExchangeScenario()
    let alice: ConnectionID
    let bob: ConnectionID
    let carol: ConnectionID
    let invite: InviteID
    let bobsName: ConnectionName
    let resume: SessionStart.Resume?

    init() {
        alice = exchange.device("a", of: "alice")
        bob = exchange.device("b", of: "bob")
        carol = exchange.device("c", of: "carol")
        invite = exchange.invite("bob", from: alice)
        _ = exchange.request(.inviteAccept(InviteAccept(invite: invite)), from: bob)
        for device in [alice, bob, carol] { _ = exchange.request(.roomJoin(RoomJoin(room: "r")), from: device) }
        bobsName = exchange.session(on: bob)?.name ?? "none"
        resume = exchange.resumePoint(of: bob)
        _ = heard()
        _ = exchange.events(of: bob)
    }

    /// What Alice and Carol have heard since last asked.
    mutating func heard() -> [[ExchangeEvent]] { [alice, carol].map { exchange.events(of: $0) } }

    var inRoom: StreamChange { StreamChange(room: "r", connection: bobsName, user: "bob") }
    var inCall: StreamChange { StreamChange(invite: invite, connection: bobsName, user: "bob") }
    var gone: ExchangeEvent {
        .connectionDestroyed(ConnectionDestroyed(room: "r", connection: bobsName, reason: "connectionLost"))
    }
}

@Suite struct StreamDropTests {
    @Test("CONN-8: Peers in rooms and calls hear streamDropped at once, and streamResumed when the device is back")
    func dropAndResume() {
        var meeting = Meeting()
        meeting.exchange.feed(.disconnected(meeting.bob))
        #expect(
            meeting.heard() == [
                [.streamDropped(meeting.inRoom), .streamDropped(meeting.inCall)], [.streamDropped(meeting.inRoom)],
            ])
        let signal = RoomSignal(room: "r", to: meeting.bobsName, type: "t", data: "waits")
        #expect(meeting.exchange.refusal(of: .roomSignal(signal), from: meeting.carol) == nil)
        meeting.exchange.advance(by: .seconds(59))
        let back = meeting.exchange.device("b", of: "bob", registers: false, resume: meeting.resume)
        #expect(
            meeting.heard() == [
                [.streamResumed(meeting.inRoom), .streamResumed(meeting.inCall)], [.streamResumed(meeting.inRoom)],
            ])
        #expect(meeting.exchange.session(on: back)?.name == meeting.bobsName, "it is the same participant still")
        let shout = ClientRequest.roomSignal(RoomSignal(room: "r", type: "t"))
        #expect(meeting.exchange.refusal(of: shout, from: back) == nil)
        meeting.exchange.advance(by: .seconds(120))
        #expect(meeting.heard().map(\.count) == [1, 1], "nobody is told that the resumed device is gone")
    }

    @Test("CONN-8: What was said to a dropped participant reaches it when it resumes, in order")
    func missedSignals() {
        var meeting = Meeting()
        meeting.exchange.feed(.disconnected(meeting.bob))
        for number in 0..<3 {
            let signal = RoomSignal(room: "r", type: "t", data: .integer(Int64(number)))
            _ = meeting.exchange.request(.roomSignal(signal), from: meeting.carol)
        }
        let back = meeting.exchange.connect()
        let device = DeviceDescription(id: "b", name: "b")
        let start = SessionStart(token: Redacted("token of bob"), device: device, resume: meeting.resume)
        guard case .success(.session(let result)) = meeting.exchange.request(.sessionStart(start), from: back) else {
            return #expect(Bool(false), "no session")
        }
        #expect(result.resumed && result.connection == meeting.bobsName)
        let data = meeting.exchange.events(of: back).compactMap {
            if case .roomSignal(let signal) = $0 { signal.data } else { nil }
        }
        #expect(data == [0, 1, 2])
    }

    @Test(
        "CONN-7, CONN-8: A device that does not come back in time has left the room, while the call's media continues"
    )
    func lost() {
        var meeting = Meeting()
        meeting.exchange.feed(.disconnected(meeting.bob))
        _ = meeting.heard()
        meeting.exchange.advance(by: .seconds(60))
        #expect(meeting.heard() == [[meeting.gone], [meeting.gone]])
        #expect(meeting.exchange.core.invites.calls.count == 1)
        let back = meeting.exchange.device("b", of: "bob", registers: false, resume: meeting.resume)
        let shout = ClientRequest.roomSignal(RoomSignal(room: "r", type: "t"))
        #expect(meeting.exchange.refusal(of: shout, from: back) == .unknownRoom)
    }

    @Test("CONN-8: A device that starts afresh is another participant, and the same side of its call")
    func afresh() {
        var meeting = Meeting()
        meeting.exchange.feed(.disconnected(meeting.bob))
        _ = meeting.heard()
        let back = meeting.exchange.device("b", of: "bob")
        let name = meeting.exchange.session(on: back)?.name ?? "none"
        #expect(name != meeting.bobsName)
        let resumed = StreamChange(invite: meeting.invite, connection: name, user: "bob")
        #expect(meeting.heard() == [[meeting.gone, .streamResumed(resumed)], [meeting.gone]])
        meeting.exchange.advance(by: .seconds(120))
        #expect(meeting.heard() == [[], []])
    }

    @Test("CONN-8: Who joins a room learns which of those who are there cannot be reached")
    func newcomer() {
        var meeting = Meeting()
        meeting.exchange.feed(.disconnected(meeting.bob))
        let guest = meeting.exchange.device("g", of: "guest", registers: false)
        _ = meeting.exchange.request(.roomJoin(RoomJoin(room: "r")), from: guest)
        #expect(meeting.exchange.events(of: guest) == [.streamDropped(meeting.inRoom)])
    }

    @Test("CONN-12: Every device is asked to move, once; one that resumes on a new connection loses nothing, unheard")
    func move() {
        var meeting = Meeting()
        meeting.exchange.feed(.move(within: .seconds(30), to: "wss://b/v1/rtc"))
        let asked = ExchangeEvent.moveRequested(
            MoveRequested(withinSeconds: 30, webSocketURL: "wss://b/v1/rtc"))
        #expect(meeting.heard() == [[asked], [asked]])
        #expect(meeting.exchange.events(of: meeting.bob) == [asked])
        let moved = meeting.exchange.device("b", of: "bob", registers: false, resume: meeting.resume)
        #expect(meeting.exchange.closed[meeting.bob]?.code == 1008)
        meeting.exchange.feed(.disconnected(meeting.bob))
        #expect(meeting.heard() == [[], []], "nobody hears of a drop")
        #expect(meeting.exchange.session(on: moved)?.name == meeting.bobsName)
        #expect(meeting.exchange.session(on: moved)?.isRegistered == true)
        #expect(meeting.exchange.events(of: moved).isEmpty, "and it is not asked again")
        let signal = CallSignal(invite: meeting.invite, type: "t")
        #expect(meeting.exchange.refusal(of: .callSignal(signal), from: meeting.alice) == nil)
        #expect(meeting.exchange.events(of: moved).count == 1)
    }

    @Test("INV-13: The inviter's connection drops; the invite lives on, and the answer reaches it on resume")
    func inviterDrops() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        let invite = scenario.invite("bob", from: alice)
        let resume = scenario.resumePoint(of: alice)
        scenario.feed(.disconnected(alice))
        #expect(scenario.refusal(of: .inviteAccept(InviteAccept(invite: invite, data: "yes")), from: bob) == nil)
        let back = scenario.connect()
        let device = DeviceDescription(id: "a", name: "a")
        let start = SessionStart(token: Redacted("token of alice"), device: device, resume: resume)
        _ = scenario.request(.sessionStart(start), from: back)
        #expect(
            scenario.events(of: back) == [
                .inviteAccepted(InviteAnswered(invite: invite, invitee: "bob", device: "b", data: "yes")),
                .inviteEnded(InviteEnded(invite: invite)),
            ])
        #expect(scenario.core.invites.calls.count == 1)
    }

    @Test("CONN-5: Events caused by a device's return have a higher number than the answer to session.start names")
    func ownReturn() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let other = scenario.device("b", of: "alice")
        let invite = scenario.invite("alice", from: alice)
        _ = scenario.request(.inviteAccept(InviteAccept(invite: invite)), from: other)
        let point = scenario.resumePoint(of: alice)
        scenario.feed(.disconnected(alice))
        scenario.advance(by: .seconds(1))
        let again = scenario.connect()
        let start = SessionStart(
            token: Redacted("token of alice"), device: DeviceDescription(id: "a", name: ""), resume: point)
        guard case .success(.session(let result)) = scenario.request(.sessionStart(start), from: again) else {
            return #expect(Bool(false), "no session")
        }
        let told = (scenario.inboxes[other] ?? []).compactMap { received -> UInt64? in
            if case .event(let event) = received, case .streamResumed = event.event { event.sequence } else { nil }
        }
        #expect(!told.isEmpty && told.allSatisfy { $0 > result.sequence }, "\(told) after \(result.sequence)")
    }

    @Test("A user's sessions without a connection are bounded: the oldest goes, and leaves its rooms")
    func detachedBound() {
        var settings = ExchangeCore.Settings()
        settings.sessionsPerUser = 2
        var scenario = ExchangeScenario(settings: settings)
        let carol = scenario.device("c", of: "carol")
        _ = scenario.request(.roomJoin(RoomJoin(room: "r")), from: carol)
        let guest = Principal(user: "guest", kind: .guest(login: SecretDigest(of: "token of guest").hex))
        for number in 0..<5 {
            let device = scenario.device("g\(number)", of: "guest", registers: false)
            _ = scenario.request(.roomJoin(RoomJoin(room: "r")), from: device)
            scenario.feed(.disconnected(device))
        }
        #expect(scenario.core.sessions.detached(of: guest).count == 2)
        #expect(scenario.core.rooms.occupants(of: "r").count == 3)
        scenario.advance(by: .seconds(60))
        #expect(scenario.core.rooms.occupants(of: "r").count == 1)
        #expect(scenario.core.streams[guest] == nil, "nothing is left of a stranger")
    }
}
