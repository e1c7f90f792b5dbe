import SignalSupport
import SignalWire
import Testing
import Timekeeping

@testable import Exchange

@Suite struct QuietDeviceTests {
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
}
