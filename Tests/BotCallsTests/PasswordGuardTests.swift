import Core
import Testing

@testable import BotCalls

@Suite("Guessing at the port for bots' requests, and holding its connections")
struct PasswordGuardTests {
    private func address(_ number: Int) throws -> ClientAddress {
        try #require(ClientAddress("192.0.\(number / 256).\(number % 256)"))
    }

    /// How many of so many wrong passwords are compared.
    private func tried(_ count: Int, _ passwords: inout PasswordGuard, from address: ClientAddress, at now: Instant)
        -> Int
    {
        (0..<count).count { _ in passwords.begin(address, at: now) == nil }
    }

    @Test("An address has 30 wrong passwords in ten minutes, and then none; the next one comes evenly")
    func perAddress() throws {
        var passwords = PasswordGuard()
        let (guesser, other) = (try address(1), try address(2))
        #expect(tried(1_000, &passwords, from: guesser, at: .zero) == 30)
        let refused = passwords.begin(guesser, at: .zero)
        let wait = try #require(refused)
        #expect((19.9...20).contains(wait.seconds))
        #expect(passwords.begin(other, at: .zero) == nil)
        #expect(tried(1_000, &passwords, from: guesser, at: .zero.advanced(by: .seconds(600))) == 30)
    }

    @Test("Right passwords cost nothing")
    func right() throws {
        var passwords = PasswordGuard()
        let server = try address(1)
        for _ in 0..<1_000 {
            #expect(passwords.begin(server, at: .zero) == nil)
            passwords.succeeded(server, at: .zero)
        }
        #expect(passwords.wait(server, at: .zero) == nil)
    }

    @Test("All strange addresses together have 300; one that gave a right password lately has its own, and keeps it")
    func strangers() throws {
        var passwords = PasswordGuard()
        let server = try address(0)
        #expect(passwords.begin(server, at: .zero) == nil)
        passwords.succeeded(server, at: .zero)
        var tries = 0
        for number in 1...100 { tries += tried(30, &passwords, from: try address(number), at: .zero) }
        #expect(tries == 300)
        #expect(passwords.begin(try address(101), at: .zero) != nil)
        #expect(passwords.begin(server, at: .zero) == nil)
    }

    /// Names connections, as channels do.
    private final class Connection {
        var id: ObjectIdentifier { ObjectIdentifier(self) }
    }

    @Test("Idle connections of one address keep no other out, nor a new one of the same")
    func idle() throws {
        var connections = RequestConnections()
        let held = (0..<1_000).map { _ in Connection() }
        for (index, one) in held.enumerated() {
            let admission = connections.admit(one.id, from: try address(1), remembered: [])
            let idle = index < RequestConnections.mostOfAddress ? nil : held[index - RequestConnections.mostOfAddress]
            #expect(admission == (idle.map { .takenFor($0.id) } ?? .taken))
        }
        let own = (0..<RequestConnections.mostOfAddress).map { _ in Connection() }
        for one in own { #expect(connections.admit(one.id, from: try address(2), remembered: []) == .taken) }
        // It is full: the address that has most gives way, and of two the one that has held longest.
        let next = Connection()
        let oldest = held[held.count - RequestConnections.mostOfAddress]
        #expect(connections.count == RequestConnections.most)
        #expect(connections.admit(next.id, from: try address(3), remembered: []) == .takenFor(oldest.id))
        #expect(connections.count == RequestConnections.most)
    }

    @Test("A connection with a right password stays; where all have one, the next is refused until one ends")
    func trusted() throws {
        var connections = RequestConnections()
        let held = (0..<RequestConnections.most).map { _ in Connection() }
        for (index, one) in held.enumerated() {
            #expect(connections.admit(one.id, from: try address(index % 4), remembered: []) == .taken)
            if index > 0 { connections.trust(one.id) }
        }
        let (next, last) = (Connection(), Connection())
        #expect(connections.admit(next.id, from: try address(9), remembered: []) == .takenFor(held[0].id))
        connections.trust(next.id)
        #expect(connections.admit(last.id, from: try address(9), remembered: []) == .refused)
        connections.leave(held[5].id)
        #expect(connections.admit(last.id, from: try address(9), remembered: []) == .taken)
    }

    @Test("Strangers who connect without pause end no connection of an address that gave a right password lately")
    func churn() throws {
        var connections = RequestConnections()
        let (server, second) = (try address(0), try address(1))
        let waiting = Connection()
        #expect(connections.admit(waiting.id, from: server, remembered: [server]) == .taken)
        let strangers = (0..<1_000).map { _ in Connection() }
        for (index, one) in strangers.enumerated() {
            let admission = connections.admit(one.id, from: try address(2 + index % 80), remembered: [server])
            #expect(admission != .refused && admission != .takenFor(waiting.id))
        }
        #expect(connections.count == RequestConnections.most)
        // Another one of the server's, too, is taken at a stranger's cost.
        let next = Connection()
        let admission = connections.admit(next.id, from: server, remembered: [server])
        #expect(admission != .refused && admission != .takenFor(waiting.id))
        // When all are of such addresses, a stranger is refused, and one of such an address takes the oldest's place.
        var full = RequestConnections()
        let held = (0..<RequestConnections.most).map { _ in Connection() }
        for (index, one) in held.enumerated() {
            let from = index % 2 == 0 ? server : second
            #expect(full.admit(one.id, from: from, remembered: [server, second]) == .taken)
        }
        let (stranger, third) = (Connection(), Connection())
        let known = [server, second, try address(3)]
        #expect(full.admit(stranger.id, from: try address(2), remembered: known) == .refused)
        #expect(full.admit(third.id, from: try address(3), remembered: known) == .takenFor(held[0].id))
    }
}
