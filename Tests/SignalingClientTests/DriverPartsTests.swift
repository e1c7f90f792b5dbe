import CallControl
import JSON
import SignalWire
import Testing
import Core

@testable import SignalingClient

@Suite("Parts of the client's driver")
struct DriverPartsTests {
    private final class Socket {}

    // MARK: Sockets

    @Test("CONN-12: The next socket replaces the present one only while no request waits for its answer")
    func nextSocket() {
        var sockets = SocketTable<Socket>()
        let (first, second) = (Socket(), Socket())
        #expect(sockets.add(first, of: 1, isNext: false) == nil)
        #expect(sockets.open(first, of: 1) == .present)
        #expect(sockets.add(second, of: 2, isNext: true) == nil)
        #expect(sockets.current === first && !sockets.isReplacing)
        #expect(sockets.open(second, of: 2) == .next)
        #expect(sockets.isReplacing)
        #expect(sockets.takeOpenAttempt(isQuiet: false) == nil)
        #expect(sockets.takeOpenAttempt(isQuiet: true) == 2)
        #expect(sockets.takeOpenAttempt(isQuiet: true) == nil)
        #expect(sockets.replace(with: 3) == nil)
        #expect(sockets.current === first)
        #expect(sockets.replace(with: 2) === first)
        #expect(sockets.current === second)
        #expect(sockets.socket(of: 1) == nil && sockets.socket(of: 2) === second)
    }

    @Test("When the present socket ends, the next one takes its place; a socket that was given up is unusable")
    func lostSocket() {
        var sockets = SocketTable<Socket>()
        let (first, second, third) = (Socket(), Socket(), Socket())
        #expect(sockets.add(first, of: 1, isNext: false) == nil)
        #expect(sockets.add(second, of: 2, isNext: true) == nil)
        #expect(sockets.remove(1) === first)
        #expect(sockets.current === second)
        #expect(sockets.remove(1) == nil)
        #expect(sockets.open(first, of: 1) == .none)
        #expect(sockets.add(third, of: 3, isNext: false) === second)
        #expect(sockets.current === third)
        #expect(sockets.add(first, of: 4, isNext: true) == nil)
        #expect(sockets.open(first, of: 4) == .next)
        #expect(sockets.remove(4) === first)
        #expect(!sockets.isReplacing && sockets.current === third)
        #expect(sockets.removeAll().count == 1)
        #expect(sockets.current == nil)
    }

    @Test("CONN-12: A move waits for answers for half of the time that the exchange gives")
    func move() {
        var sockets = SocketTable<Socket>()
        sockets.requestMove(to: "wss://b", within: .seconds(10), at: .zero)
        #expect(sockets.nextDeadline == Instant(nanoseconds: 5_000_000_000))
        #expect(sockets.takeMove(isQuiet: false, at: Instant(nanoseconds: 4_999_999_999)) == nil)
        #expect(sockets.takeMove(isQuiet: false, at: Instant(nanoseconds: 5_000_000_000))?.address == "wss://b")
        #expect(sockets.nextDeadline == nil)
        sockets.requestMove(to: nil, within: .seconds(-1), at: .zero)
        #expect(sockets.takeMove(isQuiet: false, at: .zero) != nil)
        sockets.requestMove(to: nil, within: .seconds(10), at: .zero)
        sockets.cancelMove()
        #expect(sockets.takeMove(isQuiet: true, at: .zero) == nil)
    }

    // MARK: Tokens

    private func keeper(canRenew: Bool = true) -> TokenKeeper {
        TokenKeeper(canRenew: canRenew, stableAfter: .seconds(10), seed: 1)
    }

    private func login(_ token: String) -> RESTClient.Login {
        RESTClient.Login(token: Redacted(token), lifetime: .seconds(100))
    }

    @Test("AUTH-4: However many attempts find that a token is refused, one renewal is made and answers them all")
    func oneRenewal() {
        var (tokens, outbox) = (keeper(), [TokenKeeper.Output]())
        tokens.replace(Redacted("a"), for: 1, at: .zero, into: &outbox)
        #expect(outbox == [.replaced(attempts: [1], .failure(tokens.absence))])
        outbox = []
        tokens.take(login("a"), isKept: false, at: .zero, into: &outbox)
        #expect(outbox.isEmpty && tokens.login == login("a"))
        tokens.replace(Redacted("a"), for: 2, at: .zero, into: &outbox)
        tokens.replace(Redacted("a"), for: 3, at: .zero, into: &outbox)
        #expect(outbox == [.renew(login("a"), isRefused: true)])
        outbox = []
        tokens.take(login("b"), isKept: false, at: .zero, into: &outbox)
        #expect(outbox == [.replaced(attempts: [2, 3], .success(login("b")))])
        outbox = []
        tokens.replace(Redacted("a"), for: 4, at: .zero, into: &outbox)
        #expect(outbox == [.replaced(attempts: [4], .success(login("b")))], "it was renewed in the meantime")
    }

    @Test("AUTH-4: When a refused token cannot be renewed, those who wait are notified and the login is lost")
    func lostLogin() {
        var (tokens, outbox) = (keeper(), [TokenKeeper.Output]())
        tokens.take(login("a"), isKept: false, at: .zero, into: &outbox)
        tokens.replace(Redacted("a"), for: 1, at: .zero, into: &outbox)
        outbox = []
        let refusal = SignalingError(.loginRefused, activity: "log in", cause: "test")
        tokens.renewalFailed(ServiceFailure(refusal, remedy: .none), at: .zero, into: &outbox)
        #expect(outbox.count == 2 && tokens.login == nil && !tokens.isRenewing(login("a")))
        #expect(outbox == [.replaced(attempts: [1], .failure(tokens.absence)), .lost(tokens.absence)])
        #expect(tokens.absence.error.code == .tokenExpired)
    }

    @Test(
        "AUTH-11: A refused token is worth another one if it was good once, and not if its successor is refused at once"
    )
    func worthReplacing() {
        var (tokens, outbox) = (keeper(), [TokenKeeper.Output]())
        tokens.take(login("a"), isKept: false, at: .zero, into: &outbox)
        #expect(tokens.isWorthReplacing(at: .zero) == false, "it has never been good")
        tokens.confirm()
        #expect(tokens.isWorthReplacing(at: .zero) == true)
        #expect(tokens.isRejected)
        tokens.take(login("b"), isKept: false, at: .zero, into: &outbox)
        tokens.confirm()
        #expect(!tokens.isRejected)
        #expect(
            tokens.isWorthReplacing(at: Instant(nanoseconds: 10_000_000_000)) == false,
            "the one before was refused just now")
        tokens.take(login("c"), isKept: true, at: .zero, into: &outbox)
        #expect(tokens.isWorthReplacing(at: Instant(nanoseconds: 20_000_000_001)) == true)
        var fixed = keeper(canRenew: false)
        fixed.take(login("a"), isKept: true, at: .zero, into: &outbox)
        #expect(fixed.isWorthReplacing(at: .zero) == false, "there is no other")
    }

    // MARK: Requests

    private func request(_ policy: SendPolicy) -> ApplicationRequests.Request {
        .init(activity: "test", policy: policy, send: { _ in }, fail: { _ in })
    }

    /// `send`, or the code of the failure.
    private func names(_ outputs: [ApplicationRequests.Output]) -> [String] {
        outputs.map { output in
            switch output {
            case .send(_, let ticket): "send \(ticket)"
            case .fail(_, let error): "fail \(error.code.rawValue)"
            }
        }
    }

    @Test("CONN-6, CONN-12: Requests wait while the socket is changed, even those that would fail while it is away")
    func changingSockets() {
        var (requests, outbox) = (ApplicationRequests(), [ApplicationRequests.Output]())
        let path = ApplicationRequests.Path(state: .connected, hasSocket: true, isChangingSockets: false)
        requests.add(request(.queued), over: path, at: .zero, into: &outbox)
        #expect(names(outbox) == ["fail notAuthenticated"])
        outbox = []
        requests.handle(.loginSucceeded, over: path, at: .zero, into: &outbox)
        requests.add(request(.atOnce), over: path, at: .zero, into: &outbox)
        #expect(names(outbox) == ["send 2"])
        outbox = []
        let changing = ApplicationRequests.Path(state: .connected, hasSocket: true, isChangingSockets: true)
        requests.add(request(.atOnce), over: changing, at: .zero, into: &outbox)
        requests.add(request(.queued), over: changing, at: .zero, into: &outbox)
        #expect(outbox.isEmpty && requests.nextDeadline == Instant(nanoseconds: 5_000_000_000))
        requests.release(into: &outbox)
        #expect(names(outbox) == ["send 3", "send 4"])
        outbox = []
        let away = ApplicationRequests.Path(state: .connected, hasSocket: false, isChangingSockets: false)
        requests.add(request(.atOnce), over: away, at: .zero, into: &outbox)
        requests.enqueue(4, over: away, at: .zero, into: &outbox)
        #expect(names(outbox) == ["fail disconnected"])
        outbox = []
        requests.finish(4)
        requests.giveUp(into: &outbox)
        #expect(outbox.isEmpty, "it was answered")
    }

    // MARK: Events

    @Test("CONN-5: A number is published once in a session, and a session that begins starts its own numbering")
    func numbers() {
        var events = EventFilter(device: "d1")
        let answers = [5, 5, 4, 6].map { events.isNew($0) }
        #expect(answers == [true, false, false, true])
        let resumed = SessionGrant(
            session: "s", connection: "c", user: "ann", isResumed: true, sequence: 2, keepalive: .seconds(1))
        events.begin(resumed)
        #expect(events.isNew(6) == false)
        var fresh = resumed
        fresh.isResumed = false
        events.begin(fresh)
        #expect(events.isNew(2) == false)
        #expect(events.isNew(3) == true)
    }

    @Test("INV-17: The device is not notified of its own answer, and is notified of that of another device")
    func ownAnswer() {
        var events = EventFilter(device: "d1")
        #expect(events.passes(.inviteHandled(InviteHandling(invite: "i", device: "d1", action: .accepted))) == false)
        #expect(events.passes(.inviteHandled(InviteHandling(invite: "i", device: "d2", action: .accepted))) == true)
        #expect(events.passes(.notification("hello")) == true)
    }

    @Test("CONN-7: A device that was taken out of a room receives that, and does not join again by itself")
    func removed() {
        var events = EventFilter(device: "d1")
        events.begin(SessionGrant(session: "s", connection: "mine", user: "ann", sequence: 0, keepalive: .seconds(1)))
        let result = RoomJoin.Result(participants: [.init(connection: "other", user: "bob")])
        _ = events.enter(RoomJoin(room: "lobby"), result)
        #expect(events.joins.map(\.room) == ["lobby"])
        #expect(events.passes(.connectionDestroyed(room: "lobby", connection: "other", reason: "removed")) == true)
        #expect(events.joins.count == 1)
        #expect(events.passes(.connectionDestroyed(room: "lobby", connection: "mine", reason: "removed")) == true)
        #expect(events.joins.isEmpty)
    }

    // MARK: Servers

    @Test("Servers are asked for again at half of their credentials' lifetime, and a failed question is repeated")
    func servers() {
        var servers = ServerList()
        let server = CallControl.ICEServer(urls: ["turn:a"])
        var resources = CallControl.ConnectionResources(
            webSocketURL: "wss://a", iceServers: [server], iceServersLifetime: .seconds(100), keepalive: .seconds(1),
            resumeWindow: .seconds(1))
        #expect(servers.take(resources, at: .zero) == true)
        #expect(servers.all == [server])
        #expect(servers.take(resources, at: .zero) == false, "they are the same")
        #expect(servers.takeDue(at: Instant(nanoseconds: 49_999_999_999)) == false)
        #expect(servers.takeDue(at: Instant(nanoseconds: 50_000_000_000)) == true)
        #expect(servers.nextDeadline == Instant(nanoseconds: 110_000_000_000))
        resources.iceServersLifetime = nil
        #expect(servers.take(resources, at: .zero) == false)
        #expect(servers.nextDeadline == nil)
    }
}
