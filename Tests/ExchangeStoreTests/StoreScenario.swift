import ExchangeCore
import ExchangeServer
import Foundation
import JSON
import SignalSupport
import SignalWire
import Synchronization
import Core

/// A clock that a test sets, and steps.
final class ScriptedClock: Sendable {
    private struct State {
        var instant = Instant(nanoseconds: 5_000_000_000)
        var timeOfDay = WallClock(unixMilliseconds: 1_700_000_000_000)
        var boot = "first"
    }
    private let state = Mutex(State())

    var now: Instant { state.withLock { $0.instant } }

    /// Time goes by.
    func advance(by duration: Duration) {
        state.withLock {
            $0.instant = $0.instant.advanced(by: duration)
            $0.timeOfDay.unixMilliseconds += Int64(duration.milliseconds)
        }
    }

    /// Somebody sets the clock.
    func step(by duration: Duration) {
        state.withLock { $0.timeOfDay.unixMilliseconds += Int64(duration.milliseconds) }
    }

    /// The machine restarts: instants begin again.
    func reboot() {
        state.withLock {
            $0.boot += " again"
            $0.instant = Instant(nanoseconds: 1_000_000_000)
        }
    }

    var clock: StoreClock {
        StoreClock(
            instant: { self.state.withLock { $0.instant } }, timeOfDay: { self.state.withLock { $0.timeOfDay } },
            boot: state.withLock { $0.boot })
    }
}

/// A folder for one test, removed with it.
final class Folder {
    let path: String

    init() throws {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("store-\(UUID())")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        path = url.path
    }

    var database: String { path + "/exchange.sqlite" }
    deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// What is written and read in these tests.
enum Sample {
    static func invite(at now: Instant, ttl: Double = 30) -> StoredInvite {
        StoredInvite(
            id: "invite-1", inviter: "alice", inviterDevice: "a", group: "g",
            invitees: [.init(user: "bob", state: .accepted, device: "b"), .init(user: "carol", state: .pending)],
            data: ["offer": "v=0\r\nü"], payload: [1, nil, 2.5], timeoutPayload: "missed", idempotencyKey: "k",
            ttlSeconds: ttl, sentAt: now, deadline: now.advanced(by: .seconds(ttl)), isOnlineOnly: true)
    }

    static func push(_ id: PushID, at now: Instant) -> StoredPush {
        StoredPush(
            id: id, invite: "invite-1", user: "bob", device: "b", target: .init(kind: "apns", token: Redacted("t")),
            message: .ended, inviter: "alice", group: "g", payload: ["n": 1], reason: "cancelled",
            deadline: now.advanced(by: .seconds(30)), expires: now.advanced(by: .seconds(60)), due: now, attempts: 1)
    }

    static func event(
        _ number: UInt64, at now: Instant, for audience: StoredEvent.Audience, of principal: Principal = .account("bob")
    ) -> StoredEvent {
        let event = ExchangeEvent.notification(NotificationReceived(payload: ["n": 9_007_199_254_740_993]))
        let text = (try? EventText(event)) ?? EventText(kept: "")
        return StoredEvent(
            principal: principal, sequence: number, body: EventBody(number: number, text: text), audience: audience,
            at: now)
    }
}
