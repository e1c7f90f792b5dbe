@testable import ExchangeCore
import JSON
import SignalSupport
import SignalWire
import TestSupport
import Testing
import Core

private let token = DeviceRegister.PushTarget(kind: "apns", token: Redacted("token of phone"))

private var settings: ExchangeCore.Settings {
    ExchangeCore.Settings(push: PushConfiguration(kinds: ["apns", "fcm"]))
}

extension ExchangeScenario {
    /// A device of `user` that has registered push tokens, and is gone.
    fileprivate mutating func sleeper(
        _ id: DeviceID = "phone", of user: UserID = "bob", _ targets: [DeviceRegister.PushTarget] = [token]
    ) {
        let connection = device(id, of: user)
        let description = DeviceDescription(id: id, name: id.text)
        request(.deviceRegister(DeviceRegister(device: description, push: targets)), from: connection)
        request(.sessionEnd(SessionEnd()), from: connection)
        feed(.disconnected(connection))
    }

    /// The webhook answers the newest attempt.
    fileprivate mutating func answer(_ answer: PushAnswer) {
        guard let push = posts.last else { return }
        feed(.pushAnswered(push.id, attempt: push.attempts, answer))
    }

    /// What was posted: what, to which device, why.
    fileprivate var told: [String] { posts.map { "\($0.message) \($0.device) \($0.reason ?? "-")" } }
    fileprivate var dead: [DeadPush] {
        changes.compactMap { if case .pushDied(let push, _) = $0 { push } else { nil } }
    }
}

@Suite struct PushTests {
    @Test("DEV-4: An invite is pushed to the devices that are not connected, with its payload and its end")
    func invite() throws {
        var scenario = ExchangeScenario(settings: settings)
        scenario.sleeper()
        scenario.sleeper("without", of: "bob", [])
        _ = scenario.device("desk", of: "bob")
        let alice = scenario.device("a", of: "alice")
        let invite = scenario.invite("bob", from: alice, ttl: 30, payload: ["n": 1])
        #expect(scenario.told == ["invite phone -"])
        let push = try #require(scenario.posts.first)
        #expect(push.invite == invite && push.inviter == "alice")
        #expect(push.payload?.value == ["n": 1] && push.target == token)
        #expect(push.expires == scenario.timeline.now.advanced(by: .seconds(30)) && push.deadline == push.expires)
    }

    @Test("DEV-4: An invite for devices that are online, one's own device and other members of a group are not pushed")
    func notPushed() {
        var scenario = ExchangeScenario(settings: settings)
        scenario.sleeper()
        _ = scenario.device("desk", of: "bob")
        scenario.sleeper("a", of: "alice")
        scenario.sleeper("c", of: "carol")
        let alice = scenario.device("a", of: "alice")
        _ = scenario.invite("bob", from: alice, onlineOnly: true)
        _ = scenario.invite("alice", from: alice, key: "self")
        _ = scenario.request(.groupCreate(GroupCreate(group: "g", name: "G", members: ["bob", "carol"])), from: alice)
        #expect(scenario.told.isEmpty)
        let send = InviteSend(to: ["carol"], group: "g", ttl: 30, idempotencyKey: "group")
        _ = scenario.request(.inviteSend(send), from: alice)
        #expect(scenario.told == ["invite c -"])
    }

    @Test(
        "DEV-4, INV-4: A device that was pushed hears by push that another one answered, and the one that did does not")
    func handled() {
        for action in [InviteHandled.Action.accepted, .rejected] {
            var scenario = ExchangeScenario(settings: settings)
            scenario.sleeper()
            let desk = scenario.device("desk", of: "bob")
            let alice = scenario.device("a", of: "alice")
            let invite = scenario.invite("bob", from: alice)
            scenario.answer(.taken)
            let answer: ClientRequest =
                action == .accepted
                ? .inviteAccept(InviteAccept(invite: invite)) : .inviteReject(InviteReject(invite: invite))
            _ = scenario.request(answer, from: desk)
            #expect(scenario.told == ["invite phone -", "ended phone \(action)"])
        }
        var scenario = ExchangeScenario(settings: settings)
        scenario.sleeper()
        let alice = scenario.device("a", of: "alice")
        let invite = scenario.invite("bob", from: alice)
        scenario.answer(.taken)
        let phone = scenario.device("phone", of: "bob")
        _ = scenario.request(.inviteAccept(InviteAccept(invite: invite)), from: phone)
        scenario.feed(.disconnected(phone))
        #expect(scenario.told == ["invite phone -"])
    }

    @Test("DEV-4, INV-6, INV-7: Cancel and time-out reach a pushed device, with the timeout payload if there is one")
    func ended() {
        for payload in [nil, "missed"] as [JSONValue?] {
            for cancels in [true, false] {
                var scenario = ExchangeScenario(settings: settings)
                scenario.sleeper()
                let alice = scenario.device("a", of: "alice")
                let invite = scenario.invite("bob", from: alice, timeoutPayload: payload)
                scenario.answer(.taken)
                if cancels {
                    _ = scenario.request(.inviteCancel(InviteCancel(invite: invite)), from: alice)
                } else {
                    scenario.advance(by: .seconds(30))
                }
                let reason = cancels ? "cancelled" : "timedOut"
                #expect(scenario.told == ["invite phone -", "ended phone \(reason)"])
                #expect(scenario.posts.last?.payload == KeptJSON(payload))
                scenario.answer(.taken)
                scenario.advance(by: .seconds(600))
                #expect(scenario.posts.count == 2 && scenario.core.pushes.openCount == 0)
            }
        }
    }

    @Test(
        "DEV-4, INV-7: A missed call is pushed to a device that the invite did not reach; without a payload nothing is")
    func missed() {
        for payload in [nil, "missed"] as [JSONValue?] {
            var scenario = ExchangeScenario(settings: settings)
            let alice = scenario.device("a", of: "alice")
            let desk = scenario.device("desk", of: "bob")
            _ = scenario.invite("bob", from: alice, timeoutPayload: payload)
            // The token comes while the invite rings, and the device goes with a goodbye: nothing is pushed then.
            let device = DeviceDescription(id: "desk", name: "desk")
            scenario.request(.deviceRegister(DeviceRegister(device: device, push: [token])), from: desk)
            scenario.request(.sessionEnd(SessionEnd()), from: desk)
            #expect(scenario.told.isEmpty)
            scenario.advance(by: .seconds(30))
            #expect(scenario.told == (payload == nil ? [] : ["ended desk timedOut"]))
        }
    }

    @Test("DEV-4: An invite that no webhook takes until its end is a dead letter, and is not tried after it")
    func expiry() {
        var scenario = ExchangeScenario(settings: settings)
        scenario.sleeper()
        let alice = scenario.device("a", of: "alice")
        _ = scenario.invite("bob", from: alice, ttl: 30)
        scenario.answer(.failed("connection refused", wait: .seconds(10), isAboutAll: false))
        scenario.advance(by: .seconds(11))
        #expect(scenario.posts.count == 2)
        scenario.advance(by: .seconds(19))
        #expect(scenario.dead.map(\.reason) == [.expired] && scenario.dead.first?.attempts == 2)
        #expect(scenario.core.counters.deadPushes == 1)
        // The device may know of it: the second attempt has not been answered.
        scenario.answer(.failed("500", wait: nil, isAboutAll: false))
        scenario.advance(by: .zero)
        #expect(scenario.told == ["invite phone -", "invite phone -", "ended phone timedOut"])
    }

    @Test("DEV-4: A device that comes online hears the invite there, and is not pushed to again")
    func comesOnline() {
        var scenario = ExchangeScenario(settings: settings)
        scenario.sleeper()
        let alice = scenario.device("a", of: "alice")
        let invite = scenario.invite("bob", from: alice)
        scenario.answer(.failed("500", wait: nil, isAboutAll: false))
        let phone = scenario.connect()
        let device = DeviceDescription(id: "phone", name: "phone")
        scenario.request(
            .sessionStart(SessionStart(token: Redacted("token of bob"), device: device)), from: phone)
        scenario.request(.deviceRegister(DeviceRegister(device: device)), from: phone)
        #expect(scenario.events(of: phone).count == 1)
        scenario.advance(by: .seconds(20))
        #expect(scenario.posts.count == 1)
        _ = scenario.request(.inviteCancel(InviteCancel(invite: invite)), from: alice)
        scenario.advance(by: .seconds(60))
        #expect(scenario.posts.count == 1 && scenario.dead.isEmpty)
    }

    @Test("DEV-4: A device that loses its connection while an invite rings is pushed to, once")
    func loses() {
        var scenario = ExchangeScenario(settings: settings)
        let alice = scenario.device("a", of: "alice")
        var phone = scenario.device("phone", of: "bob")
        let device = DeviceDescription(id: "phone", name: "phone")
        scenario.request(.deviceRegister(DeviceRegister(device: device, push: [token])), from: phone)
        _ = scenario.invite("bob", from: alice)
        #expect(scenario.told.isEmpty)
        scenario.feed(.disconnected(phone))
        #expect(scenario.told == ["invite phone -"])
        scenario.answer(.taken)
        phone = scenario.device("phone", of: "bob")
        scenario.feed(.disconnected(phone))
        #expect(scenario.told == ["invite phone -"])
    }

    @Test(
        "DEV-4: A device that resumes hears the invite there; one that an exchange that goes down sends off needs no push"
    )
    func resumes() {
        var scenario = ExchangeScenario(settings: settings)
        let alice = scenario.device("a", of: "alice")
        var phone = scenario.device("phone", of: "bob")
        let device = DeviceDescription(id: "phone", name: "phone")
        scenario.request(.deviceRegister(DeviceRegister(device: device, push: [token])), from: phone)
        _ = scenario.invite("bob", from: alice)
        let resume = scenario.resumePoint(of: phone)
        scenario.feed(.disconnected(phone))
        scenario.answer(.failed("500", wait: nil, isAboutAll: false))
        phone = scenario.device("phone", of: "bob", registers: false, resume: resume)
        scenario.advance(by: .seconds(20))
        #expect(scenario.told == ["invite phone -"])

        _ = scenario.invite("bob", from: alice, key: "second")
        scenario.feed(.goingDown)
        scenario.feed(.disconnected(phone))
        #expect(scenario.told == ["invite phone -"])
    }

    @Test("DEV-2: Unregistering stops pushes at once, also those that are waiting to be tried again")
    func unregisters() {
        var scenario = ExchangeScenario(settings: settings)
        scenario.sleeper()
        let alice = scenario.device("a", of: "alice")
        let invite = scenario.invite("bob", from: alice, timeoutPayload: "missed")
        scenario.answer(.taken)
        let phone = scenario.device("phone", of: "bob")
        _ = scenario.request(.deviceUnregister(DeviceUnregister()), from: phone)
        scenario.feed(.disconnected(phone))
        _ = scenario.request(.inviteCancel(InviteCancel(invite: invite)), from: alice)
        scenario.advance(by: .seconds(60))
        #expect(scenario.told == ["invite phone -"])
    }

    @Test("DEV-4: A token that the service does not know any more is removed, and the device's others stay")
    func gone() {
        var scenario = ExchangeScenario(settings: settings)
        let other = DeviceRegister.PushTarget(kind: "fcm", token: Redacted("other"))
        scenario.sleeper("phone", of: "bob", [other, token])
        let alice = scenario.device("a", of: "alice")
        let invite = scenario.invite("bob", from: alice)
        #expect(scenario.posts.map(\.target) == [other, token])
        scenario.answer(.gone("410 Unregistered"))
        #expect(scenario.core.pushes.targets(of: Endpoint(user: "bob", device: "phone")) == [other])
        #expect(scenario.dead.map(\.reason) == [.gone])
        _ = scenario.request(.inviteCancel(InviteCancel(invite: invite)), from: alice)
        _ = scenario.invite("bob", from: alice, key: "second")
        #expect(scenario.posts.last?.target == other && scenario.posts.last?.message == .invite)
        #expect(!"\(scenario.dead) \(scenario.notes)".contains("token of phone"))
    }

    @Test("DEV-4: A user whose account is removed is pushed to no more")
    func removed() {
        var scenario = ExchangeScenario(settings: settings)
        scenario.sleeper()
        let alice = scenario.device("a", of: "alice")
        _ = scenario.invite("bob", from: alice)
        scenario.answer(.failed("500", wait: nil, isAboutAll: false))
        scenario.feed(.accountsChanged(ExchangeScenario.users.filter { $0.id != "bob" }))
        scenario.advance(by: .seconds(60))
        #expect(scenario.posts.count == 1 && scenario.core.pushes.entries(of: "bob").isEmpty)
    }

    @Test("DEV-4, INV-16: After a restart pushes continue: what was under way is made again, what was made is not")
    func restart() {
        var scenario = ExchangeScenario(settings: settings)
        scenario.sleeper()
        scenario.sleeper("tablet")
        let alice = scenario.device("a", of: "alice")
        let invite = scenario.invite("bob", from: alice)
        scenario.answer(.taken)  // The tablet's.
        #expect(scenario.told == ["invite phone -", "invite tablet -"])

        var next = ExchangeScenario(restoring: scenario.saved, at: scenario.timeline.now, settings: settings)
        next.advance(by: .milliseconds(1))
        #expect(next.told == ["invite phone -"] && next.posts.first?.attempts == 2)
        #expect(next.posts.first?.id == scenario.posts.first?.id, "a webhook can tell that it is the same")
        next.answer(.taken)
        let caller = next.device("a", of: "alice")
        _ = next.request(.inviteCancel(InviteCancel(invite: invite)), from: caller)
        #expect(next.told.dropFirst() == ["ended phone cancelled", "ended tablet cancelled"])
        next.posts.suffix(2).forEach { next.feed(.pushAnswered($0.id, attempt: 1, .taken)) }
        #expect(next.changes.filter { if case .pushForgotten = $0 { true } else { false } }.count == 4)
    }

    @Test("DEV-4: Dead letters are dropped after their time")
    func pruning() {
        var scenario = ExchangeScenario(settings: settings)
        scenario.sleeper()
        let alice = scenario.device("a", of: "alice")
        _ = scenario.invite("bob", from: alice)
        scenario.answer(.refused("403"))
        scenario.advance(by: .seconds(600))
        let before = scenario.changes.compactMap { if case .deadPushesPruned(let before) = $0 { before } else { nil } }
        #expect(before == [scenario.timeline.now.advanced(by: .seconds(-30 * 86_400))])
    }
}
