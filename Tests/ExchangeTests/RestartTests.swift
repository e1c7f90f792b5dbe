@testable import ExchangeCore
import JSON
import SignalSupport
import SignalWire
import TestSupport
import Testing
import Core

extension ExchangeScenario {
    /// What a disk holds on which every change was written up to now, as far as these tests look at it.
    var saved: Saved {
        var saved = Saved()
        saved.run = 2
        for change in changes {
            switch change {
            case .token(let token): saved.tokens = saved.tokens.filter { $0.digest != token.digest } + [token]
            case .tokenForgotten(let digest): saved.tokens.removeAll { $0.digest == digest }
            case .login(let login): saved.logins = saved.logins.filter { $0.id != login.id } + [login]
            case .loginForgotten(let id): saved.logins.removeAll { $0.id == id }
            case .session(let session):
                saved.sessions.removeAll { $0.id == session.id }
                saved.sessions.append(session)
            case .sessionForgotten(let id): saved.sessions.removeAll { $0.id == id }
            case .invite(let invite):
                saved.invites.removeAll { $0.id == invite.id }
                saved.invites.append(invite)
            case .inviteForgotten(let id): saved.invites.removeAll { $0.id == id }
            case .call(let call): saved.calls.append(call)
            case .callForgotten(let invite, let invitee):
                saved.calls.removeAll { $0.invite == invite && $0.invitee == invitee }
            case .event(let event): saved.events.append(event)
            case .sequenceReserved(let principal, let number):
                saved.change(principal) { $0.reserved = max($0.reserved, number) }
            case .eventsForgotten(let principal, let number):
                saved.events.removeAll { $0.principal == principal && $0.sequence <= number }
                saved.change(principal) { $0.forgotten = max($0.forgotten, number) }
            case .streamForgotten(let principal):
                saved.events.removeAll { $0.principal == principal }
                saved.streams.removeAll { $0.principal == principal }
            case .push(let push):
                if let index = saved.pendingPushes.firstIndex(where: { $0.id == push.id }) {
                    saved.pendingPushes[index] = push
                } else {
                    saved.pendingPushes.append(push)
                }
            case .pushForgotten(let id): saved.pendingPushes.removeAll { $0.id == id }
            case .pushTargets(let entry):
                saved.pushTargets.removeAll { $0.user == entry.user && $0.device == entry.device }
                if !entry.targets.isEmpty { saved.pushTargets.append(entry) }
            case .userAdded(let user, let added): saved.added[user] = added
            case .userForgotten(let user): saved.added[user] = nil
            case .fileUsers(let users): saved.fileUsers = Set(users)
            case .acquaintance(let entry):
                saved.acquaintances.removeAll { $0.owner == entry.owner && $0.user == entry.user }
                saved.acquaintances.append(entry)
            case .acquaintanceForgotten(let owner, let user):
                saved.acquaintances.removeAll { $0.owner == owner && $0.user == user }
            case .acquaintancesForgotten(let user):
                saved.acquaintances.removeAll { $0.owner == user || $0.user == user }
            case .eventsPruned(let before):
                for event in saved.events where event.at < before {
                    saved.change(event.principal) { stream in
                        if event.audience == .every {
                            stream.forgotten = max(stream.forgotten, event.sequence)
                        } else {
                            stream.outdated[event.audience] = event.sequence
                        }
                    }
                }
                saved.events.removeAll { $0.at < before }
            case .group(let group): saved.groups = saved.groups.filter { $0.id != group.id } + [group]
            case .groupForgotten(let id): saved.groups.removeAll { $0.id == id }
            case .record, .pruned, .pushDied, .deadPushesPruned: break
            // No core writes letters yet.
            case .letter, .lettersForgotten, .letterMarks: break
            }
        }
        return saved
    }

    /// The steps in the records of calls, in order.
    var steps: [CallStep.Kind] {
        changes.compactMap { if case .record(let step) = $0 { step.kind } else { nil } }
    }

    /// An exchange that goes on with what this one left on disk, `pause` later.
    func restarted(after pause: Duration = .zero, users: [Account] = Self.users) -> ExchangeScenario {
        var next = ExchangeScenario(restoring: saved, at: timeline.now, users: users)
        next.advance(by: pause)
        return next
    }
}

private func resume(_ session: SessionID, after number: UInt64, of user: UserID, device: DeviceID) -> ClientRequest {
    .sessionStart(
        SessionStart(
            token: Redacted("token of \(user)"), device: DeviceDescription(id: device, name: device.text),
            resume: .init(session: session, after: number)))
}

@Suite struct RestartTests {
    @Test("INV-16: After a restart a pending invite rings on, and times out when it would have")
    func pendingInvite() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let invite = scenario.invite("bob", from: alice, ttl: 30, timeoutPayload: "missed")
        scenario.advance(by: .seconds(10))
        var next = scenario.restarted()
        let bob = next.device("b", of: "bob")
        let caller = next.device("a", of: "alice")
        next.advance(by: .milliseconds(19_999))
        #expect(next.events(of: bob).isEmpty)
        next.advance(by: .milliseconds(1))
        #expect(
            next.events(of: bob) == [
                .inviteTimedOut(InviteTimedOut(invite: invite, invitees: ["bob"])),
                .inviteMissed(InviteMissed(invite: invite, payload: "missed")),
            ])
        #expect(
            next.events(of: caller) == [
                .inviteTimedOut(InviteTimedOut(invite: invite, invitees: ["bob"])),
                .inviteEnded(InviteEnded(invite: invite)),
            ])
    }

    @Test("INV-16: What fell due while the exchange was down is done at once")
    func overdue() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        _ = scenario.invite("bob", from: alice, ttl: 5)
        var saved = scenario.saved
        saved.invites[0].deadline = .zero
        let next = ExchangeScenario(restoring: saved, at: Instant(nanoseconds: 1_000_000_000))
        #expect(next.core.nextDeadline == .zero)
        var fired = next
        fired.feed(.timer)
        #expect(fired.saved.invites.first?.invitees.first?.state == .timedOut)
    }

    @Test("INV-16: A clock that was set back holds no invite up for longer than its whole ttl")
    func clockSetBack() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let invite = scenario.invite("bob", from: alice, ttl: 5)
        var saved = scenario.saved
        saved.invites[0].deadline = saved.invites[0].deadline?.advanced(by: .seconds(3_600))
        var next = ExchangeScenario(restoring: saved, at: .zero)
        let bob = next.device("b", of: "bob")
        next.advance(by: .seconds(5))
        #expect(next.events(of: bob) == [.inviteTimedOut(InviteTimedOut(invite: invite, invitees: ["bob"]))])
    }

    @Test("INV-9: An invite without a ttl is there after a restart, and does not time out")
    func endless() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let invite = scenario.invite("bob", from: alice, ttl: 0)
        var next = scenario.restarted(after: .seconds(86_400))
        next.feed(.tokenIssued(SecretDigest(of: "token of bob"), Grant(user: "bob", isAnonymous: false)))
        let bob = next.device("b", of: "bob")
        #expect(next.refusal(of: .inviteAccept(InviteAccept(invite: invite)), from: bob) == nil)
    }

    @Test("INV-1: A retry with the same idempotency key gives the same invite, a restart between them or not")
    func idempotency() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let first = scenario.invite("bob", from: alice, key: "k")
        _ = scenario.request(.inviteCancel(InviteCancel(invite: first)), from: alice)
        var next = scenario.restarted()
        let again = next.device("a", of: "alice")
        #expect(next.invite("bob", from: again, key: "k") == first)
        next.advance(by: .seconds(301))
        #expect(next.invite("bob", from: again, key: "k") != first)
    }

    @Test("INV-5: An invite that was accepted before a restart is not accepted again by another device after it")
    func answeredOnce() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b1", of: "bob")
        let invite = scenario.invite("bob", from: alice)
        _ = scenario.request(.inviteAccept(InviteAccept(invite: invite)), from: bob)
        var next = scenario.restarted()
        let (first, second) = (next.device("b1", of: "bob"), next.device("b2", of: "bob"))
        let accept = ClientRequest.inviteAccept(InviteAccept(invite: invite))
        #expect(next.refusal(of: accept, from: second) == .alreadyHandled)
        #expect(next.refusal(of: accept, from: first) == nil)
        let end = CallEnd(invite: invite, reason: "completed", durationMilliseconds: 5_000)
        #expect(next.refusal(of: .callEnd(end), from: first) == nil)
        #expect(next.saved.calls.isEmpty)
    }

    @Test("CONN-5, INV-13: A session resumes after a restart with what it missed, and numbers continue")
    func resumes() {
        var scenario = ExchangeScenario()
        let bob = scenario.device("b", of: "bob")
        let alice = scenario.connect()
        let start = SessionStart(token: Redacted("token of alice"), device: DeviceDescription(id: "a", name: "a"))
        guard case .success(.session(let session)) = scenario.request(.sessionStart(start), from: alice) else {
            Issue.record("no session")
            return
        }
        let invite = scenario.invite("bob", from: alice)
        scenario.feed(.disconnected(alice))
        _ = scenario.request(.inviteReject(InviteReject(invite: invite)), from: bob)

        var next = scenario.restarted(after: .seconds(59))
        let back = next.connect()
        let request = resume(session.session, after: 0, of: "alice", device: "a")
        guard case .success(.session(let result)) = next.request(request, from: back) else {
            Issue.record("no session")
            return
        }
        #expect(result.resumed && result.session == session.session && result.sequence == 2)
        let heard = next.events(of: back)
        #expect(heard.last == .inviteEnded(InviteEnded(invite: invite)))
        #expect(heard.count == 2)
        let bobs = next.device("b", of: "bob")
        let second = next.invite("bob", from: back, key: "2")
        _ = next.request(.inviteReject(InviteReject(invite: second)), from: bobs)
        let numbers = next.inboxes[back]?.compactMap { received -> UInt64? in
            if case .event(let numbered) = received { numbered.sequence } else { nil }
        }
        #expect(numbers == [3, 4])
    }

    @Test("CONN-5: A session that was cut off has one resume window, however often the exchange starts in it")
    func oneWindow() {
        var scenario = ExchangeScenario()
        let bob = scenario.device("b", of: "bob")
        let alice = scenario.device("a", of: "alice")
        for device in [alice, bob] { _ = scenario.request(.roomJoin(RoomJoin(room: "r")), from: device) }
        guard let point = scenario.resumePoint(of: alice) else { return #expect(Bool(false), "no session") }
        func restarted(_ scenario: ExchangeScenario) -> ExchangeScenario {
            var next = ExchangeScenario(
                restoring: scenario.saved, at: scenario.timeline.now, after: scenario.changes)
            next.feed(.timer)
            next.advance(by: .seconds(20))
            return next
        }
        for (restarts, isInTime) in [(2, true), (3, false)] {
            var next = scenario
            for _ in 0..<restarts { next = restarted(next) }
            let bobs = next.device("b", of: "bob")
            _ = next.request(.roomJoin(RoomJoin(room: "r")), from: bobs)
            let back = next.connect()
            guard
                case .success(.session(let result)) = next.request(
                    resume(point.session, after: point.after, of: "alice", device: "a"), from: back)
            else {
                Issue.record("no session")
                continue
            }
            #expect(result.resumed == isInTime, "20 s go by after each restart")
            let returns = next.events(of: bobs).filter { if case .streamResumed = $0 { true } else { false } }
            #expect(returns.isEmpty, "who has not heard of a drop hears of no return")
        }
    }

    @Test("CALL-6: A call continues if its devices come back within the resume window after a restart, and else ends")
    func callsOutliveDowntime() {
        for (downtime, areConnected) in [(0.0, true), (50, false), (50, true), (600, false), (600, true)] {
            var scenario = ExchangeScenario()
            let alice = scenario.device("a", of: "alice")
            let bob = scenario.device("b", of: "bob")
            let invite = scenario.invite("bob", from: alice)
            _ = scenario.request(.inviteAccept(InviteAccept(invite: invite)), from: bob)
            // An exchange that goes down closes its connections, one that is killed does not.
            if !areConnected { for device in [alice, bob] { scenario.feed(.disconnected(device)) } }
            let start = scenario.timeline.now.advanced(by: .seconds(downtime))
            var next = ExchangeScenario(restoring: scenario.saved, at: start)
            next.feed(.timer)
            next.advance(by: .milliseconds(59_999))
            #expect(next.core.invites.calls.count == 1)
            var deserted = next
            deserted.advance(by: .milliseconds(1))
            #expect(deserted.core.invites.calls.count == 0)
            let back = next.device("a", of: "alice")
            let other = next.device("b", of: "bob")
            next.advance(by: .seconds(600))
            #expect(next.core.invites.calls.count == 1)
            let end = CallEnd(invite: invite, reason: "completed", durationMilliseconds: 5_000)
            #expect(next.refusal(of: .callEnd(end), from: back) == nil)
            #expect(next.events(of: other).contains { if case .callEnded = $0 { true } else { false } })
        }
    }

    @Test("CALL-7: A call whose devices do not come back ends with the resume window that begins with the last start")
    func windowForCalls() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        let invite = scenario.invite("bob", from: alice)
        _ = scenario.request(.inviteAccept(InviteAccept(invite: invite)), from: bob)
        for restarts in 1...3 {
            scenario = ExchangeScenario(
                restoring: scenario.saved, at: scenario.timeline.now, after: scenario.changes)
            scenario.feed(.timer)
            scenario.advance(by: .seconds(restarts < 3 ? 20 : 59))
            #expect(scenario.core.invites.calls.count == 1)
        }
        scenario.advance(by: .seconds(1))
        #expect(scenario.core.invites.calls.count == 0)
    }

    @Test("A number that was given to an event that is not kept is not given again after a restart")
    func passingNumbers() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        _ = scenario.request(.presenceSubscribe(PresenceSubscribe()), from: alice)
        for number in 0..<5 { _ = scenario.device("b\(number)", of: "bob", registers: number % 2 == 0) }
        let last = scenario.core.streams[.account("alice")]?.sequence ?? 0
        #expect(last > 0)
        let next = scenario.restarted()
        #expect((next.core.streams[.account("alice")]?.sequence ?? 0) >= last)
    }

    @Test("A token is good after a restart for as long as it was before")
    func tokens() {
        var scenario = ExchangeScenario()
        scenario.advance(by: .seconds(1_800))
        var next = scenario.restarted()
        let early = next.connect()
        let start = SessionStart(token: Redacted("token of bob"), device: DeviceDescription(id: "b", name: ""))
        #expect(next.refusal(of: .sessionStart(start), from: early) == nil)
        next.advance(by: .seconds(1_801))
        #expect(next.refusal(of: .sessionStart(start), from: next.connect()) == .tokenExpired)
    }

    @Test("A session of the exchange's own ends with its process, and leaves nothing to resume")
    func internalSessions() {
        var scenario = ExchangeScenario()
        let connection = ConnectionID(number: 99)
        scenario.feed(.attached(connection, Endpoint(user: "alice", device: "stream")))
        scenario.feed(.disconnected(connection))
        #expect(scenario.saved.sessions.isEmpty)
    }

    @Test("Ended and forgotten items leave nothing on disk")
    func nothingStays() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        let invite = scenario.invite("bob", from: alice)
        _ = scenario.request(.inviteAccept(InviteAccept(invite: invite)), from: bob)
        for connection in [alice, bob] { _ = scenario.request(.sessionEnd(SessionEnd()), from: connection) }
        scenario.advance(by: .seconds(5_000))
        let saved = scenario.saved
        #expect(saved.tokens.isEmpty && saved.logins.isEmpty)
        #expect(saved.sessions.isEmpty && saved.invites.isEmpty && saved.calls.isEmpty)
        let pruned = scenario.changes.contains { if case .pruned = $0 { true } else { false } }
        #expect(pruned)
    }

    @Test("CALL-7: Every way in which a call can end is a record with that reason")
    func records() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        func isEnd(_ kind: CallStep.Kind?, _ reason: String, _ duration: Int64 = 0) -> Bool {
            kind == .ended(reason: reason, durationMilliseconds: duration)
        }
        let declined = scenario.invite("bob", from: alice, key: "1")
        #expect(scenario.steps == [.rang(inviter: "alice", inviterDevice: "a", group: nil)])
        _ = scenario.request(.inviteReject(InviteReject(invite: declined)), from: bob)
        #expect(isEnd(scenario.steps.last, "declined"))
        let busy = scenario.invite("bob", from: alice, key: "2")
        _ = scenario.request(.inviteReject(InviteReject(invite: busy, data: ["reason": "busy"])), from: bob)
        #expect(isEnd(scenario.steps.last, "busy"))
        let cancelled = scenario.invite("bob", from: alice, key: "3")
        _ = scenario.request(.inviteCancel(InviteCancel(invite: cancelled)), from: alice)
        #expect(isEnd(scenario.steps.last, "cancelled"))
        _ = scenario.invite("bob", from: alice, ttl: 1, key: "4")
        scenario.advance(by: .seconds(1))
        #expect(isEnd(scenario.steps.last, "noAnswer"))
        let answered = scenario.invite("bob", from: alice, key: "5")
        _ = scenario.request(.inviteAccept(InviteAccept(invite: answered)), from: bob)
        #expect(scenario.steps.last == .answered(device: "b"))
        let end = CallEnd(invite: answered, reason: "completed", durationMilliseconds: 1_234)
        _ = scenario.request(.callEnd(end), from: alice)
        #expect(isEnd(scenario.steps.last, "completed", 1_234))
        #expect(scenario.steps.count == 11)
    }
}

extension Saved {
    /// Changes what is on disk of somebody's stream.
    fileprivate mutating func change(_ principal: Principal, _ change: (inout Stream) -> Void) {
        let index = streams.firstIndex { $0.principal == principal }
        var stream = index.map { streams[$0] } ?? Stream(principal: principal, reserved: 0, forgotten: 0)
        change(&stream)
        if let index { streams[index] = stream } else { streams.append(stream) }
    }
}
