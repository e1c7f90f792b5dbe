@testable import CallAgent
@testable import CallControl
import ICE
import CallMedia
import MediaEngine
import Core
import Testing

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
        var claims = MediaClaims()
        let first = calls.add(call("a"), number: claims.nextCall())
        calls.remove(first)
        let second = calls.add(call("b"), number: claims.nextCall())
        #expect(second.number == 2)
        #expect(calls.ids.count == 1)
    }

    @Test("With legs a bot's call that is not placed yet takes two streams of the workers, any other one")
    func unplacedLegs() {
        var calls = CallTable()
        let first = calls.add(call("a", .program), number: 1)
        _ = calls.add(call("b"), number: 2)
        #expect(calls.unplacedCount(besides: nil) == 2 && calls.unplacedCount(besides: nil, legs: BotLegs()) == 3)
        #expect(calls.unplacedCount(besides: first, legs: BotLegs()) == 1)
    }

    @Test("A call is found by its key, and by its invite once the service has given that an id")
    func search() {
        var calls = CallTable()
        let (first, second) = (calls.add(call("a"), number: 1), calls.add(call("b"), number: 2))
        #expect(calls.id(ofKey: "b") == second && calls.id(of: "i1") == nil)
        calls[first]?.invite.noteSent(as: "i1")
        #expect(calls.id(of: "i1") == first && calls.id(ofKey: "a") == first)
    }

    @Test("The card is taken until the machine of the call that uses it has ended")
    func card() {
        var calls = CallTable()
        let (talking, other) = (calls.add(call("a", .card), number: 1), calls.add(call("b", .card), number: 2))
        #expect(calls.isCardTaken(besides: [other, nil]))
        _ = calls[talking]?.end(record)
        #expect(!calls.isCardTaken(besides: [other]) && calls.isCardTaken(besides: [talking]))
    }

    @Test("A call has the card in place of the one that it replaces, and of the one whose peer asked for it")
    func replacedCard() {
        var calls = CallTable()
        let talking = calls.add(call("a", .card), number: 1)
        var replacing = call("b", .card)
        #expect(replacing.predecessor == nil)
        replacing.replaces = talking
        let new = calls.add(replacing, number: 2)
        #expect(calls[new]?.predecessor == talking && !calls.isCardTaken(besides: [new, talking]))
        var placed = call("c", .card)
        placed.transfer = .inPlaceOf(new)
        #expect(placed.predecessor == new)
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
        var claims = MediaClaims()
        let changes = [false, true, true, false].map { claims.noteFull($0) }
        #expect(changes == [false, true, false, true])
        #expect(!claims.isFull)
    }

    @Test("A device's admitted calls count for the others until they are placed, and no more when it has ended")
    func shared() {
        var claims = MediaClaims()
        claims.note(unplaced: 2, of: 1)
        #expect(unplaced(claims, of: 1) == 0 && unplaced(claims, of: 2) == 2)
        claims.note(unplaced: 3, of: 2)
        claims.note(unplaced: 0, of: 1)
        #expect(unplaced(claims, of: 1) == 3 && unplaced(claims, of: 2) == 0)
        claims.forget(2)
        #expect(unplaced(claims, of: 1) == 0)
    }

    /// What the calls of all other devices need, as a device that asks for room learns it.
    private func unplaced(_ claims: MediaClaims, of owner: UInt16) -> Int {
        var claims = claims
        var count = 0
        _ = claims.ask(streams: 1, besides: 0, isCall: false, of: owner) { others in
            count = others
            return true
        }
        return count
    }

    @Test("A device that asks for room has it reserved for a call, and not if it merely wants to know")
    func asking() {
        var claims = MediaClaims()
        // The workers have room for three streams.
        func ask(_ streams: Int, besides count: Int = 0, isCall: Bool, of owner: UInt16) -> Bool {
            claims.ask(streams: streams, besides: count, isCall: isCall, of: owner) { $0 + streams <= 3 }
        }
        let (wanted, first, second) = (
            ask(2, isCall: false, of: 1), ask(2, isCall: true, of: 2), ask(1, isCall: true, of: 1)
        )
        #expect(wanted && first && second)
        // Full: who is refused reserves nothing, and what it has besides counts on.
        let third = ask(1, besides: 1, isCall: true, of: 1)
        #expect(!third && unplaced(claims, of: 2) == 1 && unplaced(claims, of: 1) == 2)
        claims.note(unplaced: 0, of: 2)
        let again = ask(1, besides: 1, isCall: true, of: 1)
        #expect(again)
    }

    @Test("Of calls that refuse each other one has the card until it is over, whichever devices they are of")
    func claimedCard() {
        var claims = MediaClaims()
        let (first, second) = (CallID(number: claims.nextCall()), CallID(number: claims.nextCall()))
        #expect(first != second)
        let taken = [claims.claimCard(for: first), claims.claimCard(for: first), claims.claimCard(for: second)]
        #expect(taken == [true, true, false])
        claims.releaseCard(of: second)
        let early = claims.claimCard(for: second)
        claims.releaseCard(of: first)
        let later = claims.claimCard(for: second)
        #expect(!early && later)
        let moved = [claims.claimCard(for: first, inPlaceOf: second), claims.claimCard(for: second)]
        #expect(moved == [true, false])
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
