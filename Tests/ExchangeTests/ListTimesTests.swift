@testable import ExchangeCore
import Core
import Foundation
import Realtime
import SignalWire
import TestSupport
import Testing

/// How long a page of an operator's list keeps the exchange's thread, with 10,000 users. The figures are the machine's, so these tests run
/// at night (`scripts/nightly lists`), optimised.
@Suite(
    "What an operator's lists take of the exchange's thread", .serialized, .timeLimit(.minutes(5)),
    .enabled(if: ProcessInfo.processInfo.environment["HANDSET_NIGHTLY"] != nil))
struct ListTimesTests {
    /// What one page of the usual size may take of the thread's time.
    private static let bound = Duration.milliseconds(1)
    private static let users = 10_000

    /// 10,000 users: every second one has a device, each of these has sent an invite, every tenth is in a call, is in a room and owns groups,
    /// and ten have as many devices and open invites as users may have.
    private static func full() -> ExchangeScenario {
        let users = (0..<users).map { Account(id: UserID(ours: "user\(10_000 + $0)")) }
        var settings = ExchangeCore.Settings()
        settings.kept.total = 1 << 30
        settings.kept.user = 16 << 20
        var scenario = ExchangeScenario(settings: settings, users: users)
        var devices: [ConnectionID] = []
        for number in stride(from: 0, to: Self.users, by: 2) {
            devices.append(scenario.device("d", of: users[number].id))
        }
        for (number, device) in devices.enumerated() {
            let to = users[(2 * number + 1) % Self.users].id
            _ = scenario.invite(to, from: device, ttl: 0)
            guard number.isMultiple(of: 5) else { continue }
            let callee = (number + 1) % devices.count
            let call = scenario.invite(users[2 * callee].id, from: device, ttl: 0, key: "call")
            scenario.request(.inviteAccept(InviteAccept(invite: call, data: nil)), from: devices[callee])
            scenario.request(.roomJoin(RoomJoin(room: RoomName(ours: "room\(number / 500)"))), from: device)
            for group in 0..<3 {
                let members = (1...20).map { users[(2 * number + $0) % Self.users].id }
                scenario.request(
                    .groupCreate(GroupCreate(group: GroupID(ours: "g\(number)-\(group)"), members: members)),
                    from: device)
            }
        }
        for user in users[5_000..<5_010] {
            for number in 1..<64 { _ = scenario.device(DeviceID(ours: "more\(number)"), of: user.id) }
            let device = scenario.device("sender", of: user.id)
            for number in 0..<255 {
                _ = scenario.invite(
                    users[(number * 37) % Self.users].id, from: device, ttl: 0, key: IdempotencyKey(ours: "k\(number)"))
            }
        }
        return scenario
    }

    @Test(
        "With 10,000 users, 7,500 invites, 1,000 calls and 3,000 groups no page of the usual size takes more than 1 ms")
    func pages() throws {
        let scenario = Self.full()
        let now = scenario.timeline.now
        var core = scenario.core
        try measure("users") { core.users(after: $0, atMost: OperatorView.mostEntries) }
        try measure("invites") {
            core.openInvites(after: $0.flatMap { OperatorCursor($0) }, atMost: OperatorView.mostEntries, at: now)
        }
        try measure("calls") {
            core.runningCalls(after: $0.flatMap { OperatorCursor($0) }, atMost: OperatorView.mostEntries, at: now)
        }
        try measure("rooms") { core.allRooms(after: $0, atMost: OperatorView.mostEntries) }
        try measure("groups") {
            core.allGroups(after: $0.flatMap { OperatorCursor($0) }, atMost: OperatorView.mostEntries)
        }
    }

    /// Reads a whole list five times, and takes the best time of each page, in which the machine did nothing else.
    private func measure<Entry>(_ name: String, _ page: (String?) -> OperatorPage<Entry>) throws {
        var best: [Int64] = []
        var entries = 0
        for round in 0..<5 {
            var (after, index): (String?, Int) = (nil, 0)
            repeat {
                let began = MonotonicClock.threadCPUNanoseconds
                let found = page(after)
                let time = MonotonicClock.threadCPUNanoseconds - began
                if round == 0 {
                    best.append(time)
                    entries += found.entries.count
                } else {
                    best[index] = min(best[index], time)
                }
                (after, index) = (found.next, index + 1)
            } while after != nil
        }
        let longest = Duration.nanoseconds(best.max() ?? 0)
        let mean = Duration.nanoseconds(best.reduce(0, +) / Int64(max(1, best.count)))
        print(
            "\(name): \(entries) entries, \(best.count) pages, \(mean.milliseconds) ms for one, \(longest.milliseconds) ms at most"
        )
        #expect(entries > 0 && longest <= Self.bound, "\(name): \(longest.milliseconds) ms")
    }
}
