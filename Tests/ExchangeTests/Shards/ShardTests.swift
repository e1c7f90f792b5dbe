import Core
import Foundation
import JSON
import SignalSupport
import SignalWire
import TestSupport
import Testing

@testable import ExchangeCore

@Suite struct ShardTests {
    @Test(
        "The shard of a name is the same for ever: stored state is divided by it",
        arguments: [
            ("bob", 1), ("alice", 43), ("+15550100", 32), ("class-7", 14), ("lobby", 11), ("ü", 32), ("user-0", 63),
        ])
    func frozen(name: String, number: Int) throws {
        #expect(Shard(of: try UserID(name)).number == number)
        #expect(Shard(of: try GroupID(name)) == Shard(of: try RoomName(name)))
    }

    @Test("A number is a shard from 0 to 63")
    func bounds() {
        #expect(Shard(0)?.description == "00" && Shard(63)?.description == "3f")
        #expect(Shard(-1) == nil && Shard(64) == nil)
    }

    /// How likely it is that of `names` names more than `most` fall to one given shard.
    private func chance(of names: Int, exceeding most: Int) -> Double {
        let share = 1 / Double(Shard.count)
        // That of k names, from one k to the next, in logarithms.
        var logarithm = Double(names) * log(1 - share)
        var sum = 0.0
        for k in 0...names {
            if k > most { sum += exp(logarithm) }
            logarithm += log(Double(names - k)) - log(Double(k + 1)) + log(share) - log(1 - share)
        }
        return sum
    }

    @Test("Of 10,000 names the fullest shard has less than 1.4 times its share in 99.9 % of the cases")
    func arithmetic() {
        let most = Int(1.4 * 10_000 / Double(Shard.count))
        #expect(chance(of: 10_000, exceeding: most) * Double(Shard.count) < 0.001)
        // It is no bound that always holds, nor a much lower one.
        #expect(chance(of: 10_000, exceeding: Int(1.2 * 10_000 / Double(Shard.count))) * Double(Shard.count) > 0.001)
    }

    @Test(
        "Names as people give them fall evenly to the shards",
        arguments: ["user-", "+1555010", "device.", "f.lastname"], ["", "@example.org"])
    func even(prefix: String, suffix: String) {
        var counts = Array(repeating: 0.0, count: Shard.count)
        for number in 0..<10_000 { counts[Shard(of: UserID(ours: "\(prefix)\(number)\(suffix)")).number] += 1 }
        let share = 10_000 / Double(Shard.count)
        #expect((counts.max() ?? 0) < 1.4 * share)
        // Chi-square with 63 degrees of freedom is between 29 and 114 in 99.99 % of the cases.
        let square = counts.reduce(0) { $0 + ($1 - share) * ($1 - share) / share }
        #expect(29...114 ~= square)
    }
}

@Suite("Ids say their shard") struct ShardedIDTests {
    private func invite(shard: Shard?) throws -> InviteID {
        var exchange = ExchangeCore(accounts: ExchangeScenario.users, run: 1, shard: shard)
        var outbox: [ExchangeCore.Output] = []
        let token = Redacted("t")
        func device(_ id: DeviceID) -> DeviceDescription { DeviceDescription(id: id, name: "d") }
        let send = InviteSend(to: ["bob"], ttl: 30, idempotencyKey: "k")
        let inputs: [ExchangeCore.Input] = [
            .tokenIssued(SecretDigest(of: "t"), Grant(user: "alice", isAnonymous: false)),
            .connected(ConnectionID(number: 1)),
            .request(
                ConnectionID(number: 1), .number(1), .sessionStart(SessionStart(token: token, device: device("a")))),
            .request(ConnectionID(number: 1), .number(2), .inviteSend(send)),
        ]
        for input in inputs { exchange.handle(input, at: .zero, into: &outbox) }
        let found = outbox.compactMap { output -> InviteID? in
            guard case .respond(_, .number(2), .invite(let sent)) = output else { return nil }
            return sent.invite
        }
        return try #require(found.first)
    }

    @Test("An exchange with one core makes ids without a shard, and one of several with it")
    func prefix() throws {
        let (whole, part) = (try invite(shard: nil), try invite(shard: Shard(47)))
        #expect(whole.text.utf8.count == "invite-".utf8.count + 32 && Shard(namedIn: whole) == nil)
        #expect(part.text == whole.text.replacing("invite-", with: "invite-2f."))
        #expect(Shard(namedIn: part) == Shard(47))
    }

    @Test("The id of a group has no shard in it, because its shard is that of its name")
    func groups() throws {
        var effects = Effects(.init(), run: 1, shard: Shard(47))
        #expect(Shard(namedIn: effects.nextGroupID()) == nil)
        #expect(Shard(namedIn: effects.nextID("push") as PushID) == Shard(47))
    }

    @Test("Bodies of events of two shards have different numbers, also after a restart: one transaction may have both")
    func bodies() {
        let event = ExchangeEvent.notification(NotificationReceived(payload: 1))
        var numbers: Set<UInt64> = []
        for shard in [nil, Shard(1), Shard(63)] as [Shard?] {
            var effects = Effects(.init(), run: 1, shard: shard)
            numbers.insert(effects.body(of: event).number)
            effects.goOn(afterBody: 7)
            numbers.insert(effects.body(of: event).number)
        }
        #expect(numbers.count == 6)
    }

    @Test("Tokens of one of several shards begin with it, and are those of their login's family without it, too")
    func tokens() throws {
        let shard = try #require(Shard(47))
        let whole = RefreshToken()
        #expect(whole.text.secret.utf8.count == 76 && Shard(namedIn: whole.text) == nil)
        let part = RefreshToken(after: RefreshToken(whole.text), generation: 18, shard: shard)
        #expect(part.text.secret.hasPrefix("2f.") && part.text.secret.utf8.count == 79)
        #expect(Shard(namedIn: part.text) == shard)
        let back = try #require(RefreshToken(part.text))
        #expect(back.mark == part.mark && back.digest == part.digest && back.generation == 18)
        #expect(part.mark.family == whole.mark.family)
        #expect(RefreshToken(after: part, generation: 19, shard: Shard(1)).mark.family == whole.mark.family)
        #expect(RefreshToken(Redacted("3f" + part.text.secret)) == nil)
        #expect(RefreshToken(Redacted(String(part.text.secret.dropLast()))) == nil)

        let access = FreshSecret.accessToken(of: shard)
        #expect(Shard(namedIn: access) == shard && access.secret.utf8.count == 46)
        #expect(!SignedToken.isSigned(access.secret) && !SignedToken.isSigned(part.text.secret))
        #expect(FreshSecret.accessToken(of: nil).secret.utf8.count == 43)
    }

    @Test("A token that names no shard", arguments: ["", "2f", "2f-", "2F.a", "40.a", "2.fa", "é.a", "eyJ0.eyJ0.a2"])
    func otherTokens(text: String) { #expect(Shard(namedIn: Redacted(text)) == nil) }

    @Test(
        "A text that is no such id names no shard",
        arguments: [
            "invite-40.00", "invite-2F.00", "invite-2.00", "invite-02f.00", "2f.00", "invite-+1.00", "-", ".",
            "invite-",
            "a.b-2f.00", "invite2f.00",
        ])
    func others(text: String) throws { #expect(Shard(namedIn: try InviteID(text)) == nil) }
}
