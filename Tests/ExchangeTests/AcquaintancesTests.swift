@testable import ExchangeCore
import SignalSupport
import SignalWire
import Testing
import Core

/// The table itself; what it is for is tested with the invites.
@Suite struct AcquaintancesTests {
    private func moment(_ seconds: Int) -> Instant { Instant.zero.advanced(by: .seconds(seconds)) }

    @Test("Past its capacity a user's least recent acquaintance is forgotten, and on disk too")
    func capacity() {
        var table = Acquaintances()
        for number in 0...Acquaintances.capacity { table.meet("bob", "\(number)", at: moment(number)) }
        #expect(table.count(of: "bob") == Acquaintances.capacity)
        #expect(!table.has("bob", "0") && table.has("bob", "1") && table.has("bob", "bob") && !table.has("1", "bob"))
        let changes = table.takeChanges()
        #expect(changes.count == Acquaintances.capacity + 1)
        #expect(changes.contains(.acquaintanceForgotten(owner: "bob", user: "0")))
        #expect(table.takeChanges().isEmpty)
    }

    @Test("Who is met again is not forgotten as the oldest, and the disk hears of it once an hour at most")
    func metAgain() {
        var table = Acquaintances()
        table.meet("bob", "alice", at: moment(0))
        _ = table.takeChanges()
        table.meet("bob", "alice", at: moment(3_599))
        #expect(table.takeChanges().isEmpty)
        table.meet("bob", "alice", at: moment(3_600))
        #expect(
            table.takeChanges() == [.acquaintance(StoredAcquaintance(owner: "bob", user: "alice", used: moment(3_600)))]
        )
        for number in 0..<Acquaintances.capacity { table.meet("bob", "\(number)", at: moment(1_000)) }
        #expect(table.has("bob", "alice"))
    }

    @Test("Of a removed user nothing is left, neither its acquaintances nor others' with it")
    func forgotten() {
        var table = Acquaintances()
        table.meet("bob", "alice", at: moment(0))
        table.meet("alice", "bob", at: moment(0))
        table.meet("alice", "carol", at: moment(0))
        table.forget("bob")
        #expect(!table.has("alice", "bob") && !table.has("bob", "alice") && table.has("alice", "carol"))
        let changes = table.takeChanges()
        #expect(changes.first == .acquaintancesForgotten(of: "bob") && changes.count == 2)
    }

    @Test("More acquaintances on disk than are kept today, as after an upgrade: the oldest go, from the disk, too")
    func trimmed() {
        var table = Acquaintances()
        for number in 0..<Acquaintances.capacity + 3 {
            table.restore(StoredAcquaintance(owner: "bob", user: "\(number)", used: moment(number)))
        }
        table.trim()
        #expect(table.count(of: "bob") == Acquaintances.capacity)
        #expect(
            Set(table.takeChanges())
                == Set(["0", "1", "2"].map { Change.acquaintanceForgotten(owner: "bob", user: $0) }))
    }
}
