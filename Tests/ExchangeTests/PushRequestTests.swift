import ConfigReader
@testable import ExchangeCore
@testable import ExchangeServer
import Foundation
import JSON
import SignalSupport
import SignalWire
import Testing
import Core

private let now = Instant(nanoseconds: 5_000_000_000)
private let wall = WallClock(unixMilliseconds: 1_700_000_000_000)

private func push(_ kind: PushKind, payload: JSONValue? = ["n": 1], message: StoredPush.Message = .invite) -> StoredPush
{
    StoredPush(
        id: "push-1", invite: "invite-1", user: "bob", device: "phone",
        target: .init(kind: kind, token: Redacted("0a/b+")), message: message, inviter: "alice", group: "g",
        payload: payload, reason: message == .ended ? "cancelled" : nil, deadline: now.advanced(by: .seconds(30)),
        expires: now.advanced(by: .seconds(30)), due: now)
}

private func request(_ push: StoredPush, _ webhook: PushWebhook) throws -> (PushRequest, JSONValue) {
    let request = try PushRequest(push, to: webhook, at: now, wall)
    return (request, try JSONDecoder().decode(JSONValue.self, from: Data(request.body)))
}

extension PushRequest {
    fileprivate func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
}

@Suite struct PushRequestTests {
    @Test("DEV-4: For APNs the token is in the path, the rest in apns- headers, and the body has aps beside our keys")
    func apns() throws {
        var webhook = PushWebhook(kind: "apns", url: "https://push.example.org/", shape: .apns)
        webhook.apnsTopic = "org.example.phone.voip"
        var (request, body) = try request(push("apns"), webhook)
        #expect(request.url == "https://push.example.org/3/device/0a%2Fb%2B")
        #expect(request.header("apns-push-type") == "voip" && request.header("apns-priority") == "10")
        #expect(request.header("apns-topic") == "org.example.phone.voip")
        #expect(request.header("apns-expiration") == "1700000030")
        #expect(request.header("apns-collapse-id") == "invite-1")
        let members: JSONValue = [
            "aps": [:], "id": "push-1", "type": "invite", "invite": "invite-1", "inviter": "alice", "group": "g",
            "user": "bob", "device": "phone", "expires": 1_700_000_030, "payload": ["n": 1],
        ]
        #expect(body == members)
        webhook.apnsType = .background
        (request, body) = try Self.ask(push("apns"), webhook)
        #expect(request.header("apns-priority") == "5" && body["aps"] == ["content-available": 1])
        webhook.apnsType = .alert
        (request, body) = try Self.ask(push("apns", message: .ended), webhook)
        #expect(body["aps"]?["alert"] == ["loc-key": "HANDSET_ENDED", "loc-args": ["alice"]])
        #expect(body["reason"] == "cancelled")
        (request, body) = try Self.ask(push("apns", payload: ["aps": ["badge": 1]]), webhook)
        #expect(body["aps"] == ["badge": 1], "the application's own stands")
    }

    private static func ask(_ push: StoredPush, _ webhook: PushWebhook) throws -> (PushRequest, JSONValue) {
        try request(push, webhook)
    }

    @Test("DEV-4: For FCM there is a message with the token, data of texts, and Android's priority and time to live")
    func fcm() throws {
        let url = "https://push.example.org/v1/projects/p/messages:send"
        let (request, body) = try request(push("fcm"), PushWebhook(kind: "fcm", url: url, shape: .fcm))
        #expect(request.url == url)
        let message = body["message"]
        #expect(message?["token"] == "0a/b+" && message?["android"] == ["priority": "HIGH", "ttl": "30s"])
        let data: JSONValue = [
            "id": "push-1", "type": "invite", "invite": "invite-1", "inviter": "alice", "group": "g", "user": "bob",
            "device": "phone", "expires": "1700000030", "payload": "{\"n\":1}",
        ]
        #expect(message?["data"] == data)
    }

    @Test("DEV-4: A payload that APNs or FCM have no room for is left out, and the push says so; others get it whole")
    func large() throws {
        let payload = JSONValue.string(String(repeating: "x", count: 5_000))
        for shape in PushWebhook.Shape.allCases {
            let webhook = PushWebhook(kind: "k", url: "https://push.example.org", shape: shape)
            let (request, body) = try request(push("k", payload: payload), webhook)
            let content = shape == .fcm ? body["message"]?["data"] : body
            switch shape {
            case .generic: #expect(content?["payload"] == payload && content?["token"] == "0a/b+")
            case .apns, .fcm:
                #expect(request.body.count <= 4_096 && content?["payload"] == nil)
                #expect(content?["payload_omitted"] == (shape == .fcm ? "true" : true))
            }
        }
    }

    @Test("DEV-4: The signature is that of Standard Webhooks over id, time and body; without a secret there is none")
    func signature() throws {
        // Computed by another implementation, which gives what the specification prints for its own example.
        let secret = Array(Data(base64Encoded: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")!)
        var webhook = PushWebhook(kind: "k", url: "https://push.example.org", shape: .generic, secret: Redacted(secret))
        let (signed, _) = try request(push("k"), webhook)
        #expect(signed.header("webhook-id") == "push-1" && signed.header("webhook-timestamp") == "1700000000")
        #expect(signed.header("webhook-signature") == "v1,OKQY756RD31oO/gEA2XY1bbdBUs45ZSdqDNamO6+U38=")
        webhook.secret = nil
        let (plain, _) = try request(push("k"), webhook)
        #expect(plain.header("webhook-signature") == nil && plain.header("webhook-id") == "push-1")
    }

    @Test("DEV-4: Answers mean what the services say: 410 and their own words end a token, a wrong address does not")
    func answers() throws {
        func answer(
            _ status: Int, _ shape: PushWebhook.Shape = .generic, wait: Duration? = nil, _ body: JSONValue? = nil
        ) -> PushAnswer {
            PushAnswer(status, wait: wait, body: body, shape: shape, token: "0a")
        }
        let unregistered: JSONValue = ["error": ["status": "NOT_FOUND", "details": [["errorCode": "UNREGISTERED"]]]]
        #expect(answer(200) == .taken && answer(204) == .taken)
        #expect(answer(410) == .gone("410"))
        #expect(answer(410, .apns, ["reason": "Unregistered"]) == .gone("410 Unregistered"))
        #expect(answer(400, .apns, ["reason": "BadDeviceToken"]) == .gone("400 BadDeviceToken"))
        #expect(answer(400, .apns, ["reason": "BadTopic"]) == .refused("400 BadTopic"))
        #expect(answer(404, .fcm, unregistered) == .gone("404 UNREGISTERED"))
        #expect(answer(404, .fcm, ["error": ["status": "NOT_FOUND"]]) == .refused("404 NOT_FOUND"))
        #expect(answer(404) == .refused("404") && answer(401) == .refused("401"))
        #expect(answer(302) == .refused("302, a redirect; redirects are not followed"))
        #expect(answer(429, wait: .seconds(7)) == .failed("429", wait: .seconds(7), isAboutAll: false))
        #expect(answer(503, wait: .seconds(7)) == .failed("503", wait: .seconds(7), isAboutAll: true))
        #expect(answer(500) == .failed("500", wait: nil, isAboutAll: false))
        #expect(answer(400, .apns, ["reason": "no 0a here"]) == .refused("400"), "no text that may hold a token")
    }

    @Test("DEV-4: The configuration names webhooks by kind; every problem is noted, and none shows a secret")
    func configuration() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("push-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func read(_ push: String) throws -> (PushConfiguration, [String]) {
            let file = folder.appendingPathComponent("exchange.yaml")
            try "apps: []\nusers: []\npush:\n\(push)".write(to: file, atomically: true, encoding: .utf8)
            var problems: [ConfigProblem] = []
            let section = try ConfigDocument.read(path: file.path)
            let configuration = ExchangeConfiguration(section, &problems)
            return (configuration.push, problems.map(\.description))
        }
        try "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n".write(
            to: folder.appendingPathComponent("good"), atomically: true, encoding: .utf8)
        #expect(chmod(folder.appendingPathComponent("good").path, 0o600) == 0)
        try "sh0rt-s3cret\n".write(to: folder.appendingPathComponent("short"), atomically: true, encoding: .utf8)
        let (good, none) = try read(
            """
              webhooks:
                - {kind: apns, url: "https://push.example.org", secret_file: good, apns_topic: t, apns_push_type: alert}
                - {kind: "*", url: "http://127.0.0.1:9/x", shape: fcm}
              request_seconds: 3
              give_up_seconds: 60
              parallel_requests: 4
              dead_letter_days: 2

            """)
        #expect(none == [])
        #expect(good.webhooks.map(\.shape) == [.apns, .fcm] && good.webhooks[0].secret?.secret.count == 24)
        #expect(good.webhooks[0].apnsTopic == "t" && good.webhooks[0].apnsType == .alert)
        #expect(good.webhook(for: "apns")?.kind == "apns" && good.webhook(for: "web")?.kind == "*")
        #expect(good.requestTime == .seconds(3) && good.life == .seconds(60) && good.parallelRequests == 4)
        #expect(good.deadRetention == .seconds(2 * 86_400))
        let (_, problems) = try read(
            """
              webhooks:
                - {kind: apns, url: "http://push.example.org", secret_file: short}
                - {kind: apns, url: "http://127.0.0.1.example.org"}
                - {kind: fcm, url: "ftp://x", shape: round, colour: red}

            """)
        for text in [
            "push.webhooks[1].url: must begin", "secret_file: must hold at least 24", "\"apns\" has a webhook already",
            "[2].url: must begin", "[3].url: must be", "[3].shape: must be", "colour",
        ] { #expect(problems.contains { $0.contains(text) }, "\(text) in \(problems)") }
        #expect(!problems.joined().contains("s3cret"))
    }
}
