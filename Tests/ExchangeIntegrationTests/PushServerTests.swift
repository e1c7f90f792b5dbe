import ExchangeCore
@testable import ExchangeServer
import Foundation
import JSON
import SignalSupport
import SignalWire
import TestSupport
import Testing

/// Pushes from an exchange to a webhook, over real sockets.
@Suite(.timeLimit(.minutes(1))) struct PushServerTests {
    private static let secret = Array("0123456789abcdef01234567".utf8)

    private static func configuration(
        _ webhooks: [(kind: PushKind, url: String)], database: String? = nil
    ) -> ExchangeConfiguration {
        var configuration = ServerFixture.configuration()
        configuration.push.webhooks = webhooks.map {
            PushWebhook(kind: $0.kind, url: $0.url, shape: .generic, secret: Redacted(secret))
        }
        configuration.push.requestTime = .seconds(1)
        configuration.databasePath = database
        return configuration
    }

    /// Registers push tokens for a device of bob, which goes away.
    private static func sleeper(_ id: DeviceID = "phone", _ kinds: [PushKind] = ["web"], port: Int) async throws {
        let client = try await ServerFixture.device(id, of: "bob", port: port)
        let targets = kinds.map { DeviceRegister.PushTarget(kind: $0, token: Redacted("push-token-\(id)")) }
        let device = DeviceDescription(id: id, name: id.text)
        _ = try await client.call(DeviceRegister(device: device, push: targets))
        _ = try await client.call(SessionEnd())
        client.raw.close()
    }

    private static func invite(_ client: RPCClient, ttl: Double = 30, key: IdempotencyKey = "key") async throws
        -> InviteID
    {
        let params = InviteSend(to: ["bob"], ttl: ttl, payload: ["n": 1], idempotencyKey: key)
        return try await client.call(params).invite
    }

    @Test("DEV-4: An invite reaches the webhook signed, and so does its cancellation; no token is logged")
    func pushes() async throws {
        let webhook = try await WebhookServer { _, _ in .status(200) }
        let log = LogCapture()
        try await ServerFixture.withServer(Self.configuration([("web", webhook.url + "/hook")]), log: log) { server in
            try await Self.sleeper(port: server.port)
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            let invite = try await Self.invite(alice)
            try await webhook.wait(for: 1)
            _ = try await alice.call(InviteCancel(invite: invite))
            try await webhook.wait(for: 2)
            let (first, second) = (webhook.requests[0], webhook.requests[1])
            #expect(first.path == "/hook" && first.headers["content-type"] == "application/json")
            #expect(first.json?["type"] == "invite" && first.json?["token"] == "push-token-phone")
            #expect(first.json?["payload"] == ["n": 1] && first.json?["invite"]?.string == invite.text)
            #expect(first.headers["webhook-id"] == first.json?["id"]?.string)
            #expect(first.headers["webhook-signature"]?.hasPrefix("v1,") == true)
            #expect(second.json?["type"] == "ended" && second.json?["reason"] == "cancelled")
            alice.raw.close()
        }
        #expect(!log.text.contains("push-token-phone") && !log.text.contains("0123456789abcdef01234567"))
        await webhook.stop()
    }

    @Test("DEV-4: A webhook that fails, slams the door, hangs and asks for a wait is tried until it recovers")
    func recovers() async throws {
        let webhook = try await WebhookServer { _, count in
            switch count {
            case 1: .status(500)
            case 2: .slam
            case 3: .silence
            case 4: .status(429, ["Retry-After": "1"])
            default: .status(204)
            }
        }
        try await ServerFixture.withServer(Self.configuration([("web", webhook.url)])) { server in
            try await Self.sleeper(port: server.port)
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            _ = try await Self.invite(alice, ttl: 60)
            try await webhook.wait(for: 5)
            let requests = webhook.requests
            #expect(Set(requests.compactMap { $0.headers["webhook-id"] }).count == 1, "one push, five attempts")
            #expect(requests[4].at - requests[3].at >= .seconds(1), "Retry-After is waited for")
            #expect(requests[3].at - requests[2].at >= .seconds(1), "a hanging request has its time")
            try await until { await server.counters().pushes > 0 }
            #expect(await server.counters().deadPushes == 0)
            alice.raw.close()
        }
        await webhook.stop()
    }

    @Test("DEV-4: A webhook that hangs delays neither other webhooks nor those who are connected")
    func hangs() async throws {
        let (hanging, good) = (
            try await WebhookServer { _, _ in .silence }, try await WebhookServer { _, _ in .status(200) }
        )
        var configuration = Self.configuration([("web", hanging.url), ("sms", good.url)])
        configuration.push.requestTime = .seconds(50)
        try await ServerFixture.withServer(configuration) { server in
            for number in 0..<3 { try await Self.sleeper("phone-\(number)", ["web", "sms"], port: server.port) }
            let desk = try await ServerFixture.device("desk", of: "bob", port: server.port)
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            for number in 0..<8 {
                let invite = try await Self.invite(alice, key: "\(number)")
                guard case .inviteReceived(let event) = try await desk.event() else { return #expect(Bool(false)) }
                #expect(event.invite == invite)
            }
            try await good.wait(for: 24)
            #expect(hanging.requests.count <= 16)
            for client in [desk, alice] { client.raw.close() }
        }
        await hanging.stop()
        await good.stop()
    }

    @Test("DEV-4: A token that is gone is removed, and what could not be made is listed from the database")
    func deadLetters() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("push-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let database = folder.appendingPathComponent("exchange.sqlite").path
        let webhook = try await WebhookServer { _, _ in .status(410) }
        try await ServerFixture.withServer(Self.configuration([("web", webhook.url)], database: database)) { server in
            try await Self.sleeper(port: server.port)
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            _ = try await Self.invite(alice)
            try await until { await server.counters().deadPushes > 0 }
            _ = try await Self.invite(alice, key: "second")
            alice.raw.close()
        }
        let dead = try DeadPush.read(from: .file(database))
        #expect(dead.map(\.push.reason) == [.gone] && dead.first?.push.detail == "410")
        #expect(dead.first?.push.device == "phone" && dead.first?.push.attempts == 1)
        #expect(try DeadPush.read(from: .file(database), user: "alice").isEmpty)
        #expect(webhook.requests.count == 1)
        await webhook.stop()
    }

    @Test("DEV-4, INV-16: An exchange that restarts continues with the pushes of the one before")
    func survives() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("push-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let database = folder.appendingPathComponent("exchange.sqlite").path
        let down = try await WebhookServer { _, _ in .status(500) }
        let configuration = Self.configuration([("web", down.url)], database: database)
        try await ServerFixture.withServer(configuration) { server in
            try await Self.sleeper(port: server.port)
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            _ = try await Self.invite(alice, ttl: 60)
            try await down.wait(for: 1)
            alice.raw.close()
        }
        await down.stop()
        let up = try await WebhookServer { _, _ in .status(200) }
        try await ServerFixture.withServer(Self.configuration([("web", up.url)], database: database)) { _ in
            try await up.wait(for: 1)
        }
        #expect(up.requests.first?.headers["webhook-id"] == down.requests.first?.headers["webhook-id"])
        await up.stop()
    }
}
