@testable import ExchangeCore
import SignalSupport
import SignalWire
import Testing
import Core

@Suite struct InviteeStateTests {
    private static let states: [InviteeState] = [
        .pending, .accepted(by: "d"), .rejected(by: "d"), .timedOut, .cancelled,
    ]
    private static let inputs: [InviteeState.Input] = [
        .accept(by: "d"), .accept(by: "e"), .reject(by: "d"), .reject(by: "e"), .cancel, .timeOut,
    ]

    /// One row a state, one column an input, in the order of the lists above.
    private static let table: [[InviteeState.Step]] = [
        [
            .moves(to: .accepted(by: "d")), .moves(to: .accepted(by: "e")), .moves(to: .rejected(by: "d")),
            .moves(to: .rejected(by: "e")), .moves(to: .cancelled), .moves(to: .timedOut),
        ],
        [
            .repeats, .refused(.alreadyHandled), .refused(.alreadyHandled), .refused(.alreadyHandled), .ignored,
            .ignored,
        ],
        [
            .refused(.alreadyHandled), .refused(.alreadyHandled), .repeats, .refused(.alreadyHandled), .ignored,
            .ignored,
        ],
        [
            .refused(.inviteTimedOut), .refused(.inviteTimedOut), .refused(.inviteTimedOut),
            .refused(.inviteTimedOut), .ignored, .ignored,
        ],
        [
            .refused(.inviteCancelled), .refused(.inviteCancelled), .refused(.inviteCancelled),
            .refused(.inviteCancelled), .ignored, .ignored,
        ],
    ]

    @Test("INV-10: Every input in every state of an invitee does exactly what the table says")
    func everyPair() {
        for (row, state) in Self.states.enumerated() {
            for (column, input) in Self.inputs.enumerated() {
                #expect(state.step(input) == Self.table[row][column], "\(state) × \(input)")
            }
        }
    }

    @Test("INV-3: An invite to several users ends when the last of them has accepted, rejected or timed out")
    func severalInvitees() throws {
        let terms = InviteSend(to: "nobody", ttl: 30, idempotencyKey: "k")
        var record = InviteRecord(
            id: "i", number: 1, inviter: Endpoint(user: "alice", device: "a"), invitees: ["bob", "carol", "dave"],
            terms: terms,
            now: .zero)
        #expect(try record.take(.accept(by: "b"), for: "bob"))
        #expect(!record.isEnded)
        #expect(try record.take(.reject(by: "c"), for: "carol"))
        #expect(!record.isEnded)
        #expect(record.pending == ["dave"])
        #expect(record.timeOut() == ["dave"])
        #expect(record.isEnded)
        #expect(record.timeOut().isEmpty)
        #expect(record.state(of: "bob") == .accepted(by: "b"))
        #expect(throws: RPCError.self) { try record.take(.accept(by: "x"), for: "mallory") }
    }
}
