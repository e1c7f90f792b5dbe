@testable import CallAgent
@testable import CallControl
import ICE
import CallMedia
import MediaEngine
import NetworkAddress
import Testing
import Timekeeping

@Suite("Calls, as a device keeps them")
struct CallTableTests {
    private let record = CallRecord(
        invite: "i1", direction: .outgoing, peer: "echo", began: .zero, duration: .zero, reason: .busy, endedBy: .remote
    )

    private func call(_ key: IdempotencyKey, _ source: AudioBehaviour.Source = .silence) -> ActiveCall {
        ActiveCall(
            machine: CallMachine(dialling: InviteOptions(to: "echo", idempotencyKey: key)),
            audio: AudioBehaviour(source: source), invite: .sending(idempotencyKey: key))
    }

    @Test("The number of a call that is over is not used again")
    func numbers() {
        var calls = CallTable()
        let first = calls.add(call("a"))
        calls.remove(first)
        let second = calls.add(call("b"))
        #expect(second.number == 2)
        #expect(calls.ids.count == 1)
    }

    @Test("With legs a bot's call that is not placed yet takes two streams of the workers, any other one")
    func unplacedLegs() {
        var calls = CallTable()
        let first = calls.add(call("a", .program))
        _ = calls.add(call("b"))
        #expect(calls.unplacedCount(besides: nil) == 2 && calls.unplacedCount(besides: nil, legs: BotLegs()) == 3)
        #expect(calls.unplacedCount(besides: first, legs: BotLegs()) == 1)
    }

    @Test("A call is found by its key, and by its invite once the service has given that an id")
    func search() {
        var calls = CallTable()
        let (first, second) = (calls.add(call("a")), calls.add(call("b")))
        #expect(calls.id(ofKey: "b") == second && calls.id(of: "i1") == nil)
        calls[first]?.invite.noteSent(as: "i1")
        #expect(calls.id(of: "i1") == first && calls.id(ofKey: "a") == first)
    }

    @Test("The card is taken until the machine of the call that uses it has ended")
    func card() {
        var calls = CallTable()
        let (talking, other) = (calls.add(call("a", .card)), calls.add(call("b", .card)))
        #expect(calls.isCardTaken(besides: other))
        _ = calls[talking]?.end(record)
        #expect(!calls.isCardTaken(besides: other) && calls.isCardTaken(besides: talking))
    }

    @Test("CALL-7: The end of a call is told when its record is on disk, or at once if no journal has it")
    func kept() {
        var unrecorded = call("a")
        let noKey = unrecorded.end(record)
        #expect(noKey == nil)
        #expect(unrecorded.keptRecord?.reason == .busy)
        var recorded = call("b")
        recorded.began(inJournal: "key")
        let key = recorded.end(record)
        #expect(key == "key")
        #expect(recorded.record?.reason == .busy && recorded.keptRecord == nil)
        recorded.wasKept()
        #expect(recorded.keptRecord?.reason == .busy)
    }

    @Test("That the machine is full is told once")
    func full() {
        var calls = CallTable()
        let changes = [false, true, true, false].map { calls.noteFull($0) }
        #expect(changes == [false, true, false, true])
        #expect(!calls.isFull)
    }
}

@Suite("ICE servers of a device")
struct ICEServerListTests {
    @Test("A lookup that ends after a later one does not replace what that has found")
    func order() throws {
        var list = ICEServerList()
        let (first, second) = (list.beginLookup(), list.beginLookup())
        let server = ICE.ICEServer(.stun, at: try #require(SocketAddress(host: "192.0.2.1", port: 3_478)))
        list.endLookup(second, found: [server])
        list.endLookup(first, found: [])
        #expect(list.newest.count == 1)
    }
}
