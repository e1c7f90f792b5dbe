import SignalWire
import Testing
import Timekeeping

@testable import Exchange

@Suite struct RoomTests {
    @Test("Who joins a room is told who is there; those who are there hear of each who comes and goes, and why")
    func joinAndLeave() {
        var scenario = ExchangeScenario()
        let guest = scenario.device("g", of: "guest", registers: false)
        let bob = scenario.device("b", of: "bob")
        let alice = scenario.device("a", of: "alice")
        let join = ClientRequest.roomJoin(RoomJoin(room: "lobby"))
        func participants(_ result: Result<ClientResponse, RPCError>) -> [String]? {
            if case .success(.room(let room)) = result { room.participants.map(\.user) } else { nil }
        }
        #expect(participants(scenario.request(join, from: guest)) == [])
        #expect(participants(scenario.request(join, from: bob)) == ["guest"])
        #expect(participants(scenario.request(join, from: alice)) == ["guest", "bob"])
        #expect(participants(scenario.request(join, from: alice)) == ["guest", "bob"], "joining twice changes nothing")
        #expect(scenario.events(of: guest).count == 2)

        #expect(scenario.refusal(of: .roomLeave(RoomLeave(room: "lobby")), from: guest) == nil)
        #expect(scenario.refusal(of: .roomLeave(RoomLeave(room: "lobby")), from: guest) == .unknownRoom)
        _ = scenario.request(.sessionEnd(SessionEnd()), from: alice)
        _ = scenario.request(join, from: guest)
        scenario.feed(.disconnected(guest))
        let reasons = scenario.events(of: bob).compactMap {
            if case .connectionDestroyed(let destroyed) = $0 { destroyed.reason } else { nil }
        }
        #expect(reasons == ["left", "disconnected", "connectionLost"])
    }

    @Test("A room's name is bounded, and so are the rooms of one connection")
    func bounds() {
        var scenario = ExchangeScenario()
        let bob = scenario.device("b", of: "bob")
        func join(_ room: String) -> ClientRequest { .roomJoin(RoomJoin(room: room)) }
        #expect(scenario.refusal(of: join(""), from: bob) == .invalidParams)
        #expect(scenario.refusal(of: join(String(repeating: "r", count: 257)), from: bob) == .tooLarge)
        for number in 0..<32 { #expect(scenario.refusal(of: join("room \(number)"), from: bob) == nil) }
        #expect(scenario.refusal(of: join("one too many"), from: bob) == .tooManyRequests)
    }
}
