import Call
@testable import CallAgent
@testable import CallControl
import ICE
import CallMedia
import MediaEngine
import Core
import Testing

@Suite("Calls, as a device keeps them")
struct CallTableTests {
    private func call(
        _ number: UInt64, _ key: IdempotencyKey, _ source: AudioBehaviour.Source = .silence,
        inPlaceOf origin: CallID? = nil
    ) -> ActiveCall {
        ActiveCall(
            CallSession(
                CallID(number: number), dialling: InviteOptions(to: "echo", idempotencyKey: key),
                audio: AudioBehaviour(source: source), inPlaceOf: origin.map { (call: $0, peer: "origin") },
                using: SystemRandomNumberGenerator()))
    }

    private func feed(_ input: CallSession.Input, to call: inout ActiveCall) {
        var outbox: [CallSession.Output] = []
        call.session.handle(input, at: .zero, into: &outbox)
    }

    @Test("The number of a call that is over is not used again")
    func numbers() {
        var claims = MediaClaims()
        let numbers = [claims.nextCall(), claims.nextCall()]
        #expect(numbers == [1, 2])
    }

    @Test("With legs a bot's call that is not placed yet takes two streams of the workers, any other one")
    func unplacedLegs() {
        var calls = CallTable()
        calls.add(call(1, "a", .program))
        calls.add(call(2, "b"))
        #expect(calls.unplacedCount(besides: nil) == 2 && calls.unplacedCount(besides: nil, legs: (BotLegs(), "")) == 3)
        #expect(calls.unplacedCount(besides: CallID(number: 1), legs: (BotLegs(), "")) == 1)
        // Another behaviour has the bot.
        #expect(calls.unplacedCount(besides: nil, legs: (BotLegs(), "bot")) == 2)
    }

    @Test("A call is found by its key, and by its invite once the service has given that an id")
    func search() {
        var calls = CallTable()
        var first = call(1, "a")
        calls.add(first)
        calls.add(call(2, "b"))
        #expect(calls.id(ofKey: "b")?.number == 2 && calls.id(of: "i1") == nil)
        feed(.begin, to: &first)
        feed(.service(.event(.inviteSent("i1", invitees: []))), to: &first)
        calls.add(first)
        #expect(calls.id(of: "i1")?.number == 1 && calls.id(ofKey: "a")?.number == 1 && calls.ids.count == 2)
    }

    @Test("The card is taken until the machine of the call that uses it has ended")
    func card() {
        var calls = CallTable()
        var talking = call(1, "a", .card)
        let other = CallID(number: 2)
        calls.add(talking)
        calls.add(call(2, "b", .card))
        #expect(calls.isCardTaken(besides: [other, nil]))
        feed(.begin, to: &talking)
        feed(.service(.event(.disconnected)), to: &talking)
        calls.add(talking)
        #expect(!calls.isCardTaken(besides: [other]) && calls.isCardTaken(besides: [CallID(number: 1)]))
    }

    @Test("INV-12: A call that is rejected hinders no other, whether or not the service has confirmed it")
    func rejected() {
        var calls = CallTable()
        let invite = ReceivedInvite(
            id: "i1", inviter: "alice", invitees: ["bob"], offer: .offer("their offer"), remaining: .seconds(30))
        var ringing = ActiveCall(
            CallSession(
                CallID(number: 1), receiving: invite, audio: AudioBehaviour(source: .card),
                using: SystemRandomNumberGenerator()))
        feed(.begin, to: &ringing)
        calls.add(ringing)
        #expect(calls.ongoingCount() == 1 && calls.unplacedCount(besides: nil) == 1 && calls.isCardTaken(besides: []))
        feed(.user(.reject(.declined, cause: nil)), to: &ringing)
        calls.add(ringing)
        #expect(calls.ongoingCount() == 0 && calls.unplacedCount(besides: nil) == 0 && !calls.isCardTaken(besides: []))
        #expect(ringing.session.record == nil)
    }

    @Test("A call has the card in place of the one that it replaces, and of the one whose peer asked for it")
    func replacedCard() throws {
        var calls = CallTable()
        let talking = CallID(number: 1)
        calls.add(call(1, "a", .card))
        let invite = ReceivedInvite(id: "i2", inviter: "carol", invitees: ["echo"], data: [:], remaining: nil)
        let replacing = CallSession(
            CallID(number: 2), receiving: invite, audio: AudioBehaviour(source: .card), replacing: talking,
            using: SystemRandomNumberGenerator())
        calls.add(ActiveCall(replacing))
        #expect(replacing.predecessor == talking && !calls.isCardTaken(besides: [replacing.id, talking]))
        #expect(call(3, "c", .card, inPlaceOf: replacing.id).session.predecessor == replacing.id)
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
    private func servers(_ hosts: String...) -> [CallControl.ICEServer] {
        hosts.map { CallControl.ICEServer(urls: ["stun:\($0):3478"]) }
    }

    private func address(_ host: String, port: UInt16 = 0) throws -> SocketAddress {
        try #require(SocketAddress(host: host, port: port))
    }

    private func hosts(_ list: ICEServerList) -> [String] { list.known.map { $0.address.host } }

    @Test("The servers of a lookup that ends after a later one are not taken")
    func order() {
        var list = ICEServerList()
        let (first, second) = (list.beginLookup(), list.beginLookup())
        let later = list.take(servers("192.0.2.1"), of: second)
        let earlier = list.take(servers("192.0.2.2", "stun.test"), of: first)
        #expect(later.isEmpty && earlier.isEmpty)
        #expect(hosts(list) == ["192.0.2.1"])
    }

    @Test(
        "A server is known at once by its address or a name that was found before, and otherwise once its name is found"
    )
    func known() throws {
        var list = ICEServerList()
        var names = list.take(servers("a.test", "192.0.2.1", "[2001:db8::1]", "b.test"), of: list.beginLookup())
        #expect(names == ["a.test", "b.test"])
        #expect(hosts(list) == ["192.0.2.1", "2001:db8::1"])
        list.take(["b.test": try address("192.0.2.3")])
        #expect(hosts(list) == ["192.0.2.1", "2001:db8::1", "192.0.2.3"])
        #expect(list.known.allSatisfy { $0.address.port == 3_478 })

        names = list.take(servers("a.test", "b.test"), of: list.beginLookup())
        #expect(names == ["a.test", "b.test"])
        #expect(hosts(list) == ["192.0.2.3"])
        // No name server has answered.
        list.take([:])
        #expect(hosts(list) == ["192.0.2.3"])
        list.take(["a.test": try address("192.0.2.4"), "b.test": nil])
        #expect(hosts(list) == ["192.0.2.4"])
    }

    @Test("A TURN server has the newest name and password")
    func renewal() throws {
        var list = ICEServerList()
        let turn = try address("192.0.2.1", port: 3_478)
        for name in ["one", "two"] {
            let server = CallControl.ICEServer(urls: ["turn:turn.test"], username: name, credential: "c")
            _ = list.take([server], of: list.beginLookup())
            if name == "one" { list.take(["turn.test": turn.withPort(0)]) }
            let kind = ICE.ICEServer.Kind.turn(.udp, username: name, password: "c")
            #expect(list.known == [ICE.ICEServer(kind, at: turn)])
        }
    }

    @Test("A name of the local link does not wait for other names, nor they for it")
    func groups() {
        let groups = ICEServerLookup.groups(of: ["a.test", "turn.local", "b.test", "turn"])
        let expected: [Set<String>] = [["a.test", "b.test"], ["turn.local"], ["turn"]]
        #expect(groups.count == 3 && Set(groups) == Set(expected))
        #expect(ICEServerLookup.groups(of: []).isEmpty)
    }

    @Test("A name of the system's list of hosts is found")
    func localhost() async throws {
        let answers = await ICEServerLookup.answers(to: ["localhost"])
        let address = try #require(answers["localhost"] ?? nil)
        #expect(["127.0.0.1", "::1"].contains(address.host))
    }
}
