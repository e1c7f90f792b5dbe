@testable import ExchangeCore
@testable import ExchangeServer
import Core
import JSON
import Monitoring
import SignalWire
import TestSupport
import Testing

@testable import Tracing

private let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
private let token = DeviceRegister.PushTarget(kind: "apns", token: Redacted("token of phone"))

private func settings(trunks: [Trunk] = []) -> ExchangeCore.Settings {
    var settings = ExchangeCore.Settings(push: PushConfiguration(kinds: ["apns"]))
    settings.tracesInvites = true
    settings.invites.ofPair = 100
    settings.trunks = trunks
    return settings
}

/// An exchange whose invites are traced, on a disk that takes 5 ms.
private struct TracedScenario {
    var exchange: ExchangeScenario
    var traces: InviteTraces
    private(set) var made: [Trace] = []
    private var taken = 0

    init(
        users: [Account] = ExchangeScenario.users, trunks: [Trunk] = [], limits: InviteTraces.Limits = .init(),
        _ change: (inout TraceConfiguration) -> Void = { _ in }
    ) {
        var configuration = TraceConfiguration(url: "http://127.0.0.1:4318")
        change(&configuration)
        exchange = ExchangeScenario(settings: settings(trunks: trunks), users: users)
        traces = InviteTraces(configuration, limits: limits, seed: 1)
    }

    /// Takes the steps that were put out since last asked.
    @discardableResult
    mutating func collect() -> [Trace] {
        var new: [Trace] = []
        for step in exchange.inviteSteps.dropFirst(taken) {
            traces.handle(.step(step), at: step.at.advanced(by: .milliseconds(5)), epoch: 0, into: &new)
        }
        taken = exchange.inviteSteps.count
        made += new
        return new
    }

    mutating func accept(_ invite: InviteID, on connection: ConnectionID) {
        exchange.request(.inviteAccept(InviteAccept(invite: invite, data: nil)), from: connection)
    }

    mutating func hangUp(_ invite: InviteID, on connection: ConnectionID, reason: String = "completed") {
        exchange.request(
            .callEnd(CallEnd(invite: invite, reason: reason, durationMilliseconds: 1_000)), from: connection)
    }
}

extension Trace {
    fileprivate func span(_ name: String) -> TraceSpan? { spans.first { $0.name == name } }
}

extension TraceSpan {
    fileprivate func value(_ key: String) -> Attribute.Value? { attributes.first { $0.key == key }?.value }
    fileprivate var milliseconds: Int64 { (end - start) / 1_000_000 }
}

@Suite("The exchange's part of a call's trace") struct InviteTraceTests {
    @Test("A call's spans follow its caller's, from the invite over the commit and ringing to the end, without a name")
    func call() throws {
        var scenario = TracedScenario()
        let alice = scenario.exchange.device("a", of: "alice")
        let bob = scenario.exchange.device("b", of: "bob")
        _ = scenario.exchange.device("b2", of: "bob")
        let invite = scenario.exchange.invite("bob", from: alice, data: ["traceparent": .string(parent)])
        scenario.exchange.advance(by: .seconds(2))
        scenario.accept(invite, on: bob)
        scenario.exchange.advance(by: .seconds(3))
        #expect(scenario.collect().isEmpty, "the call goes on")
        scenario.hangUp(invite, on: alice)
        let trace = try #require(scenario.collect().first)
        #expect("\(trace.id)" == "4bf92f3577b34da6a3ce929d0e0e4736")
        #expect(trace.spans.map(\.name) == ["exchange", "commit", "ringing", "call"])
        let whole = trace.spans[0]
        #expect(whole.parent == .remote(try #require(SpanID(0x00f0_67aa_0ba9_02b7))) && whole.kind == .server)
        #expect(trace.spans.dropFirst().allSatisfy { $0.parent == .own(whole.id) })
        #expect(trace.spans.allSatisfy { whole.start <= $0.start && $0.end <= whole.end && $0.failure == nil })
        #expect(trace.spans.map(\.milliseconds) == [5_000, 5, 1_995, 3_000])
        #expect(Set(trace.spans.map(\.id)).count == 4)
        #expect(whole.value("handset.invite") == .text(invite.text))
        #expect(whole.value("handset.outcome") == .text("accepted"))
        #expect(whole.value("handset.devices") == .whole(2), "both of bob's")
        #expect(whole.events.map(\.name) == ["delivered", "accepted"])
        #expect(whole.events[0].time == whole.start + 5_000_000, "when the disk was done")
        #expect(trace.span("call")?.value("handset.reason") == .text("completed"))
        #expect(!"\(trace)".contains("alice") && !"\(trace)".contains("bob"))
        #expect(scenario.traces.count == 0)
    }

    @Test("A caller that sends no span gets a trace of the exchange's own, and one that is not recorded gets none")
    func parents() throws {
        var scenario = TracedScenario()
        let alice = scenario.exchange.device("a", of: "alice")
        let bob = scenario.exchange.device("b", of: "bob")
        func reject(_ data: JSONValue?, _ key: IdempotencyKey, _ scenario: inout TracedScenario) -> [Trace] {
            let invite = scenario.exchange.invite("bob", from: alice, data: data, key: key)
            scenario.exchange.request(.inviteReject(InviteReject(invite: invite, data: nil)), from: bob)
            return scenario.collect()
        }
        let own = try #require(reject(nil, "1", &scenario).first)
        #expect(own.spans[0].parent == .root && own.spans[0].links.isEmpty)
        #expect(own.span("call") == nil && own.spans[0].value("handset.outcome") == .text("rejected"))
        #expect(reject(["traceparent": .string("\(parent.dropLast(2))00")], "2", &scenario).isEmpty)
        let bad = try #require(reject(["traceparent": "00-nonsense"], "3", &scenario).first)
        #expect(bad.spans[0].parent == .root && bad.id != own.id)

        var quiet = TracedScenario { $0.share = 0 }
        _ = (quiet.exchange.device("a", of: "alice"), quiet.exchange.device("b", of: "bob"))
        #expect(reject(nil, "1", &quiet).isEmpty, "the share decides about calls without a parent")
        #expect(reject(["traceparent": .string(parent)], "2", &quiet).count == 1, "and the parent about others")
        #expect(quiet.traces.count == 0)
    }

    @Test(
        "What a trunk brings is linked and not followed, unless the configuration follows all; none follows no caller")
    func foreign() throws {
        let trunk = Trunk(user: "carol", numbers: [])
        for (parents, isForeign, follows) in [
            (TraceConfiguration.Parents.users, true, false), (.users, false, true), (.all, true, true),
            (.none, false, false),
        ] {
            var scenario = TracedScenario(trunks: [trunk]) { $0.parents = parents }
            let caller = scenario.exchange.device("c", of: isForeign ? "carol" : "alice")
            _ = scenario.exchange.device("b", of: "bob")
            let invite = scenario.exchange.invite(
                "bob", from: caller, data: ["offer": "sdp", "traceparent": .string(parent)])
            scenario.exchange.request(.inviteCancel(InviteCancel(invite: invite, data: nil)), from: caller)
            let trace = try #require(scenario.collect().first)
            #expect(("\(trace.id)" == "4bf92f3577b34da6a3ce929d0e0e4736") == follows)
            #expect(trace.spans[0].links.map(\.description) == (follows ? [] : [parent]))
            #expect(trace.spans[0].value("handset.outcome") == .text("cancelled"))
        }
    }

    @Test("A push lasts until its webhook has taken it or it is given up, and a device that it wakes is a delivery")
    func pushes() throws {
        var scenario = TracedScenario()
        let alice = scenario.exchange.device("a", of: "alice")
        for name in ["b", "b2"] as [DeviceID] {
            let phone = scenario.exchange.device(name, of: "bob")
            let device = DeviceDescription(id: name, name: name.text)
            scenario.exchange.request(.deviceRegister(DeviceRegister(device: device, push: [token])), from: phone)
            scenario.exchange.feed(.disconnected(phone))
        }
        let invite = scenario.exchange.invite("bob", from: alice, ttl: 10)
        let posts = scenario.exchange.posts
        try #require(posts.count == 2)
        scenario.exchange.advance(by: .seconds(1))
        scenario.exchange.feed(.pushAnswered(posts[0].id, attempt: posts[0].attempts, .taken))
        scenario.exchange.feed(.pushAnswered(posts[1].id, attempt: posts[1].attempts, .gone("410")))
        scenario.exchange.advance(by: .seconds(1))
        _ = scenario.exchange.device("b", of: "bob")
        scenario.exchange.advance(by: .seconds(20))
        let trace = try #require(scenario.collect().first)
        let made = trace.spans.filter { $0.name == "push" }
        #expect(made.map(\.failure) == [nil, "gone"] && made.allSatisfy { $0.milliseconds == 1_000 })
        #expect(trace.spans[0].events.map(\.name) == ["delivered", "timedOut"])
        #expect(trace.spans[0].value("handset.outcome") == .text("timedOut"))
        #expect(trace.span("ringing")?.milliseconds == 9_995)
        #expect(!"\(trace)".contains("token of phone") && !"\(trace)".contains("bob"))
        _ = invite
    }

    @Test("An invite to several users ends with its last call, and each call is one of them by number")
    func several() throws {
        var scenario = TracedScenario { $0.hasNames = true }
        let alice = scenario.exchange.device("a", of: "alice")
        let bob = scenario.exchange.device("b", of: "bob")
        let carol = scenario.exchange.device("c", of: "carol")
        let params = InviteSend(to: ["bob", "carol"], ttl: 30, idempotencyKey: "key")
        guard case .success(.invite(let sent)) = scenario.exchange.request(.inviteSend(params), from: alice) else {
            Issue.record("the invite is refused")
            return
        }
        for device in [carol, bob] { scenario.accept(sent.invite, on: device) }
        scenario.hangUp(sent.invite, on: bob, reason: "connectionLost")
        #expect(scenario.collect().isEmpty)
        scenario.exchange.advance(by: .seconds(1))
        scenario.hangUp(sent.invite, on: carol)
        let trace = try #require(scenario.collect().first)
        let calls = trace.spans.filter { $0.name == "call" }
        #expect(calls.map { $0.value("handset.invitee") } == [.whole(2), .whole(1)])
        #expect(calls.map(\.failure) == [nil, "connectionLost"])
        #expect(trace.spans[0].value("handset.user") == .text("alice"))
        #expect(trace.spans[0].value("handset.peer") == .text("bob carol"))
    }

    @Test("What the operator ends says so")
    func operatorEnds() throws {
        var scenario = TracedScenario()
        let alice = scenario.exchange.device("a", of: "alice")
        let bob = scenario.exchange.device("b", of: "bob")
        let first = scenario.exchange.invite("bob", from: alice, key: "1")
        _ = scenario.exchange.order(.endInvite(first))
        #expect(scenario.collect().first?.spans[0].value("handset.outcome") == .text("operator"))
        let second = scenario.exchange.invite("bob", from: alice, key: "2")
        scenario.accept(second, on: bob)
        _ = scenario.exchange.order(.endCall(second, with: nil))
        #expect(scenario.collect().first?.span("call")?.value("handset.reason") == .text("operator"))
    }

    @Test("Past the limit the oldest trace is dropped and counted; spans and events of one trace have a limit, too")
    func limits() throws {
        var limits = InviteTraces.Limits()
        (limits.invites, limits.parts) = (4, 3)
        var scenario = TracedScenario(limits: limits)
        let alice = scenario.exchange.device("a", of: "alice")
        let bob = scenario.exchange.device("b", of: "bob")
        var invites: [InviteID] = []
        for number in 0..<30 {
            invites.append(scenario.exchange.invite("bob", from: alice, ttl: 0, key: IdempotencyKey(ours: "\(number)")))
            // Some end, so that the order has gaps.
            if number % 3 == 0 {
                scenario.exchange.request(
                    .inviteReject(InviteReject(invite: invites[number], data: nil)), from: bob)
            }
            scenario.collect()
            #expect(scenario.traces.count <= 4)
        }
        #expect(scenario.made.count == 10 && scenario.traces.dropped == 16)
        for number in 0..<5 {
            let connection = scenario.exchange.device(DeviceID(ours: "more\(number)"), of: "bob")
            scenario.exchange.feed(.disconnected(connection))
        }
        scenario.exchange.request(.inviteReject(InviteReject(invite: invites[29], data: nil)), from: bob)
        let trace = try #require(scenario.collect().first)
        #expect(trace.spans[0].events.count == 3 && trace.spans[0].value("handset.left_out") == .whole(4))
    }

    @Test("At the exchange's end, what has not ended is put out as it is")
    func finish() throws {
        var scenario = TracedScenario()
        let alice = scenario.exchange.device("a", of: "alice")
        let bob = scenario.exchange.device("b", of: "bob")
        let call = scenario.exchange.invite("bob", from: alice, key: "1")
        scenario.accept(call, on: bob)
        _ = scenario.exchange.invite("bob", from: alice, key: "2")
        #expect(scenario.collect().isEmpty)
        var made: [Trace] = []
        let end = scenario.exchange.timeline.now.advanced(by: .seconds(7))
        scenario.traces.handle(.finish, at: end, epoch: 0, into: &made)
        #expect(made.map { $0.span("call")?.milliseconds } == [7_000, nil])
        #expect(made[1].span("ringing")?.milliseconds == 6_995 && scenario.traces.count == 0)
    }

    @Test("An exchange that traces nothing puts out no steps")
    func off() {
        var exchange = ExchangeScenario()
        let alice = exchange.device("a", of: "alice")
        _ = exchange.device("b", of: "bob")
        let invite = exchange.invite("bob", from: alice, data: ["traceparent": .string(parent)])
        exchange.request(.inviteCancel(InviteCancel(invite: invite, data: nil)), from: alice)
        #expect(exchange.inviteSteps.isEmpty)
    }

    @Test("A trace says how long the disk took, and nothing is traced of an invite that the disk never had")
    func disk() throws {
        let scenario = HubScenario(users: ["alice", "bob"], traces: TraceConfiguration(url: "http://127.0.0.1:4318"))
        var made: [Trace] = []
        let configuration = TraceConfiguration(url: "http://127.0.0.1:4318")
        scenario.hub.traceCalls(InviteTraces(configuration, seed: 1)) { made.append($0) }
        let alice = try scenario.device(of: "alice")
        _ = try scenario.device(of: "bob")
        try scenario.ask(InviteSend(to: ["bob"], ttl: 1, idempotencyKey: "1"), on: alice)
        scenario.settle()
        let trace = try #require(made.first)
        #expect((3...10).contains(try #require(trace.span("commit")).milliseconds), "a commit takes 3 ms here")
        #expect(trace.spans[0].value("handset.outcome") == .text("timedOut"))
        scenario.disk.fault = StoreError(stopped: "slow disk")
        try scenario.ask(InviteSend(to: ["bob"], ttl: 1, idempotencyKey: "2"), on: alice)
        scenario.settle()
        scenario.hub.endTraces()
        #expect(made.count == 1)
    }
}
