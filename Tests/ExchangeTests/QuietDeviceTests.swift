@testable import ExchangeCore
import SignalSupport
import SignalWire
import Testing
import Core

@Suite struct QuietDeviceTests {
    @Test("CONN-5: A device that heard of a group long ago resumes its session; one that says it did not starts afresh")
    func oldGroupChange() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob", registers: false)
        let before = scenario.resumePoint(of: bob)
        _ = scenario.request(.groupCreate(GroupCreate(group: "class", members: ["bob"])), from: alice)
        let after = before.map { SessionStart.Resume(session: $0.session, after: $0.after + 1) }
        scenario.advance(by: .seconds(300))
        for (point, resumes) in [(after, true), (before, false)] {
            let again = scenario.connect()
            let start = SessionStart(
                token: Redacted("token of bob"), device: DeviceDescription(id: "b", name: ""), resume: point)
            guard case .success(.session(let result)) = scenario.request(.sessionStart(start), from: again) else {
                return #expect(Bool(false), "no session")
            }
            #expect(result.resumed == resumes)
        }
    }

    @Test(
        "CONN-5: A device without events for a long time continues with its session, regardless of the events of its user's others"
    )
    func quietDevice() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let busy = scenario.device("busy", of: "bob")
        let quiet = scenario.device("quiet", of: "bob", registers: false)
        let point = scenario.resumePoint(of: quiet)
        let invite = scenario.invite("bob", from: alice, key: "k")
        _ = scenario.request(.inviteAccept(InviteAccept(invite: invite)), from: busy)
        for _ in 0..<300 {
            scenario.request(.callSignal(CallSignal(invite: invite, type: "t")), from: alice)
            scenario.advance(by: .milliseconds(400))
        }
        scenario.feed(.disconnected(quiet))
        scenario.advance(by: .seconds(30))
        let again = scenario.connect()
        let start = SessionStart(
            token: Redacted("token of bob"), device: DeviceDescription(id: "quiet", name: ""), resume: point)
        guard case .success(.session(let result)) = scenario.request(.sessionStart(start), from: again) else {
            return #expect(Bool(false), "no session")
        }
        #expect(result.resumed)
    }

    @Test(
        "CONN-5: A device that answered an invite long ago continues with its session, regardless of what others received of the answer"
    )
    func answered() {
        for restarts in [false, true] {
            var scenario = ExchangeScenario()
            let alice = scenario.device("a", of: "alice")
            let bob = scenario.device("b", of: "bob")
            let session = scenario.session(on: bob)?.id ?? "none"
            let invite = scenario.invite("bob", from: alice)
            let heard = scenario.core.streams[.account("bob")]?.sequence ?? 0
            _ = scenario.request(.inviteAccept(InviteAccept(invite: invite)), from: bob)
            #expect(scenario.core.streams[.account("bob")]?.sequence == heard + 1, "others of Bob's would hear of it")
            scenario.advance(by: .seconds(200))
            scenario.feed(.disconnected(bob))
            if restarts { scenario = scenario.restarted() }
            let start = SessionStart(
                token: Redacted("token of bob"), device: DeviceDescription(id: "b", name: ""),
                resume: .init(session: session, after: heard))
            guard case .success(.session(let result)) = scenario.request(.sessionStart(start), from: scenario.connect())
            else { return #expect(Bool(false), "no session") }
            #expect(result.resumed)
        }
    }
}
