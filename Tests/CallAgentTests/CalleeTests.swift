import CallControl
import Testing

@testable import CallAgent

@Suite("Calls on a stranger's word")
struct CalleeTests {
    private func list(_ patterns: String...) -> CalleeList { CalleeList(patterns.compactMap { CalleePattern($0) }) }

    @Test("CALL-8: At an exchange a transfer may reach every user, unless there is a list of callees")
    func transfers() async throws {
        let site = try await Site()
        for (callees, admitted) in [(nil, ["bob", "carol"]), (list("bob"), ["bob"]), (list(), [])] {
            let device = try await site.device("echo", named: "desk") { $0.account.callees = callees }
            for target in ["bob", "carol"] {
                let request = CallTransfer.Request(target: try UserID(target))
                #expect(await device.device.admits(request) == admitted.contains(target), "\(target) of \(admitted)")
            }
            for target in ["bob", "carol"] {
                let user = await device.device.configuration.account.mayTransferForBot(target)
                #expect((user != nil) == admitted.contains(target), "\(target) of \(admitted)")
                let called = await device.device.configuration.account.mayCall(target)
                #expect(called == user)
            }
            // A trunk of the exchange may take it.
            #expect(await device.device.configuration.account.mayCall("+4930123") == nil)
            #expect(
                await device.device.configuration.account.lists("bob") == (callees != nil && admitted.contains("bob")))
            await device.device.shutDown()
        }
        let closed = try await site.device("echo", named: "desk", answer: AnswerPolicy()) {
            $0.answer.transfers = .refuse
            $0.account.callees = list("bob")
        }
        #expect(await !closed.device.admits(CallTransfer.Request(target: "bob")))
        try await site.close(closed)
    }
}
