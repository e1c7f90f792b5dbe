import ExchangeCore
import ExchangeServer
import Foundation
import SignalSupport
import SignalWire
import Testing
import Core

/// Somebody sets the clock of the machine while the exchange runs, as a time server does after a start without a battery.
@Suite struct ClockStepTests {
    /// Forward and back, by little and by more than any ttl or resume window.
    static let steps = [-86_400, -3_600, -61, 61, 3_600, 86_400]

    private func token(_ clock: ScriptedClock) -> StoredToken {
        StoredToken(
            digest: "d", user: "alice", isAnonymous: false, expires: clock.now.advanced(by: .seconds(3_600)),
            login: "d", isRefresh: true, application: nil, scope: nil, superseded: nil, isRevoked: false,
            forgotten: clock.now.advanced(by: .seconds(4_200)), epoch: nil)
    }

    private func invite(_ id: InviteID, _ clock: ScriptedClock) -> StoredInvite {
        var invite = Sample.invite(at: clock.now)
        invite.id = id
        invite.idempotencyKey = nil
        return invite
    }

    /// Runs an exchange whose clock is set between two invites.
    ///
    /// - Returns: The store, ten seconds after the first.
    private func run(_ folder: Folder, _ clock: ScriptedClock, step: Int, closes: Bool) throws -> ExchangeStore {
        let store = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        try store.write([.invite(invite("before", clock)), .token(token(clock))])
        clock.advance(by: .seconds(5))
        clock.step(by: .seconds(step))
        try store.write([.invite(invite("after", clock))])
        clock.advance(by: .seconds(5))
        if closes { store.close() }
        return store
    }

    private func remaining(_ saved: Saved, _ clock: ScriptedClock) -> [InviteID: Double] {
        Dictionary(
            uniqueKeysWithValues: saved.invites.map { invite in
                (invite.id, invite.deadline.map { clock.now.duration(to: $0).seconds } ?? 0)
            })
    }

    @Test("INV-16, AUTH-4: A clock set while the exchange runs changes no time that remains, for this run or the next")
    func nextRun() throws {
        for step in Self.steps {
            let folder = try Folder()
            let clock = ScriptedClock()
            let first = try run(folder, clock, step: step, closes: false)
            #expect(try remaining(first.read(), clock) == ["before": 20, "after": 25], "\(step)")
            first.close()
            let second = try ExchangeStore.open(path: folder.database, clock: clock.clock)
            let saved = try second.read()
            #expect(remaining(saved, clock) == ["before": 20, "after": 25], "\(step)")
            #expect(saved.tokens.first?.expires == clock.now.advanced(by: .seconds(3_590)))
            second.close()
        }
    }

    @Test("INV-16, AUTH-4: Nor does it after a restart of the machine, whose clock alone shows how long that took")
    func nextBoot() throws {
        for step in Self.steps {
            let folder = try Folder()
            let clock = ScriptedClock()
            _ = try run(folder, clock, step: step, closes: true)
            clock.reboot()
            let next = try ExchangeStore.open(path: folder.database, clock: clock.clock)
            let saved = try next.read()
            #expect(remaining(saved, clock) == ["before": 20, "after": 25], "\(step)")
            #expect(saved.tokens.first?.expires == clock.now.advanced(by: .seconds(3_590)))
            next.close()
        }
    }

    @Test("CALL-7: A step in the record of a call says what the clock said then; a day's step drops no record")
    func records() throws {
        let folder = try Folder()
        let clock = ScriptedClock()
        let store = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        defer { store.close() }
        func step(_ kind: CallStep.Kind) throws {
            try store.write([.record(CallStep(invite: "i", invitee: "bob", kind: kind, at: clock.now))])
        }
        try step(.rang(inviter: "alice", inviterDevice: "a", group: nil))
        clock.step(by: .seconds(86_400))
        try step(.answered(device: "b"))
        clock.step(by: .seconds(-2 * 86_400))
        try step(.ended(reason: "completed", durationMilliseconds: 7))
        let retention = clock.now.advanced(by: .seconds(-90 * 86_400))
        try store.write([.pruned(eventsBefore: clock.now, recordsBefore: retention)])
        let record = try #require(try CallDetailRecord.read(from: .file(folder.database)).first)
        let day: Int64 = 86_400_000
        #expect(record.answeredAt?.unixMilliseconds == record.sentAt.unixMilliseconds + day)
        #expect(record.endedAt?.unixMilliseconds == record.sentAt.unixMilliseconds - day)
        #expect(record.durationMilliseconds == 7, "which the devices measured with a clock that nobody sets")
    }
}
