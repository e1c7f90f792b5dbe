import SignalSupport
import SignalWire
import Testing
import Timekeeping

@testable import Exchange

@Suite struct ForgottenEventsTests {
    @Test(
        "CONN-5: A device that was told nothing for long goes on with its session, whatever its user's others were told"
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

    @Test("CONN-5: Of events that are kept no longer each device is told by those alone that were for it")
    func newest() {
        var events = ForgottenEvents(upTo: 3)
        events.add(4, for: .device("a"))
        #expect(events.newest(for: "a", isRegistered: true) == 4 && events.newest(for: "b", isRegistered: true) == 3)
        events.add(5, for: .registered(except: "a"))
        events.add(7, for: .registered(except: "b"))
        events.add(9, for: .registered(except: "b"))
        #expect(events.newest(for: "a", isRegistered: true) == 9 && events.newest(for: "b", isRegistered: true) == 5)
        #expect(events.newest(for: "a", isRegistered: false) == 4 && events.newest(for: "b", isRegistered: false) == 3)
        events.add(10, for: .registered(except: nil))
        #expect(events.newest(for: "b", isRegistered: true) == 10)
    }

    @Test("CONN-5: However many devices had events of their own, what is known of them is bounded, and errs to be safe")
    func bounded() {
        var events = ForgottenEvents()
        for number in 1...UInt64(ForgottenEvents.devices) + 10 {
            events.add(number, for: .device(DeviceID(ours: "d\(number)")))
        }
        #expect(events.newest(for: "d1", isRegistered: false) == 10)
        #expect(events.newest(for: "d138", isRegistered: false) == 138)
    }
}
