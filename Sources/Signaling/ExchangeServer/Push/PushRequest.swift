import ExchangeCore
import FoundationEssentials
import HTTPTransport
import JSON
import SignalWire
import Core

/// One push as a webhook gets it: a POST with JSON in it.
struct PushRequest: Hashable, Sendable {
    var url: String
    /// With `content-type`, and without the headers of the connection.
    var headers: [Header]
    var body: [UInt8]

    /// One line of the header.
    struct Header: Hashable, Sendable {
        var name: String
        var value: String
    }

    /// What APNs and FCM take at most (4,096 bytes), past which a push goes without its payload.
    static let largestBody = 4_096

    /// - Parameters:
    ///   - now: The exchange's clock.
    ///   - wall: The time of day at that moment.
    init(_ push: StoredPush, to webhook: PushWebhook, at now: Instant, _ wall: WallClock) throws {
        func seconds(_ instant: Instant) -> Int64 {
            let ahead = Int64(now.duration(to: instant).milliseconds.rounded(.up))
            return (wall.unixMilliseconds + ahead + 999) / 1_000
        }
        let content = Content(push, deadline: push.deadline.map(seconds))
        let expires = seconds(push.expires)
        (url, body) = (webhook.url, [])
        headers = [Header(name: "content-type", value: "application/json")]
        switch webhook.shape {
        case .apns:
            url = Self.apnsURL(webhook.url, push.target.token.secret)
            headers += Self.apnsHeaders(push, webhook, expires: expires)
            body = try Self.bounded(content) { try APNsBody.encode($0, webhook.apnsType) }
        case .fcm:
            let left = max(0, now.duration(to: push.expires).seconds.rounded(.up))
            body = try Self.bounded(content) {
                try FCMBody.encode($0, token: push.target.token.secret, seconds: Int64(left))
            }
        case .generic:
            body = try PushRequest.encode(content.object(with: push))
        }
        headers += Self.signature(push.id, wall, body, webhook.secret?.secret)
    }

    private static func bounded(_ content: Content, _ encode: (Content) throws -> [UInt8]) throws -> [UInt8] {
        let body = try encode(content)
        return body.count <= largestBody ? body : try encode(content.withoutPayload)
    }

    static func encode(_ value: JSONValue) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(value))
    }

    // MARK: - APNs

    /// APNs: "Sending notification requests to APNs", the path `/3/device/<device_token>`.
    private static func apnsURL(_ base: String, _ token: String) -> String {
        let path = PercentEscape.escaped(token, allowing: PercentEscape.isUnreserved)
        let root = base.hasSuffix("/") ? String(base.dropLast()) : base
        return "\(root)/3/device/\(path)"
    }

    private static func apnsHeaders(_ push: StoredPush, _ webhook: PushWebhook, expires: Int64) -> [Header] {
        var headers = [
            Header(name: "apns-push-type", value: webhook.apnsType.rawValue),
            Header(name: "apns-expiration", value: "\(expires)"),
            // A background notification with priority 10 is an error.
            Header(name: "apns-priority", value: webhook.apnsType == .background ? "5" : "10"),
        ]
        if let topic = webhook.apnsTopic { headers.append(Header(name: "apns-topic", value: topic)) }
        // At most 64 bytes. A later notification about an invite replaces an earlier one.
        let invite = push.invite.text
        if invite.utf8.count <= 64 { headers.append(Header(name: "apns-collapse-id", value: invite)) }
        return headers
    }

    // MARK: - The signature

    private static func signature(_ id: PushID, _ wall: WallClock, _ body: [UInt8], _ secret: [UInt8]?) -> [Header] {
        WebhookSignature.fields(id.text, at: wall.unixMilliseconds / 1_000, body, keys: secret.map { [$0] } ?? [])
            .map { Header(name: $0.name, value: $0.value) }
    }
}

extension PushRequest {
    /// The content of a push, independent of its form.
    struct Content {
        /// Without the payload.
        var facts: [String: JSONValue]
        var payload: JSONValue?
        /// Whether there is a payload that the form has no room for.
        var isCut = false

        init(_ push: StoredPush, deadline: Int64?) {
            facts = [
                "id": .string(push.id.text), "type": .string(push.message.rawValue),
                "invite": .string(push.invite.text), "inviter": .string(push.inviter.text),
                "user": .string(push.user.text), "device": .string(push.device.text),
            ]
            facts["group"] = (push.group?.text).map(JSONValue.string)
            facts["reason"] = push.reason.map(JSONValue.string)
            facts["expires"] = deadline.map(JSONValue.integer)
            payload = push.payload?.value
        }

        var withoutPayload: Content {
            var content = self
            content.payload = nil
            content.isCut = true
            return content
        }

        /// All members, with the payload unchanged.
        var object: [String: JSONValue] {
            var object = facts
            object["payload"] = payload
            if isCut { object["payload_omitted"] = true }
            return object
        }

        /// The generic form.
        func object(with push: StoredPush) -> JSONValue {
            var object = object
            object["kind"] = .string(push.target.kind.text)
            object["token"] = .string(push.target.token.secret)
            return .object(object)
        }
    }

    /// A notification of APNs: the dictionary `aps`, and the application's own keys beside it.
    private enum APNsBody {
        static func encode(_ content: Content, _ type: PushWebhook.APNsType) throws -> [UInt8] {
            var body = content.object
            // An application can supply its own `aps`.
            if let own = content.payload?["aps"] {
                body["aps"] = own
            } else {
                body["aps"] = aps(content, type)
            }
            return try PushRequest.encode(.object(body))
        }

        private static func aps(_ content: Content, _ type: PushWebhook.APNsType) -> JSONValue {
            switch type {
            case .voip: return [:]
            case .background: return ["content-available": 1]
            case .alert:
                let key = content.facts["type"] == "invite" ? "HANDSET_INVITE" : "HANDSET_ENDED"
                let names: JSONValue = .array([content.facts["inviter"] ?? ""])
                return ["alert": ["loc-key": .string(key), "loc-args": names], "sound": "default"]
            }
        }
    }

    /// A message of FCM HTTP v1: `data` holds texts only.
    private enum FCMBody {
        static func encode(_ content: Content, token: String, seconds: Int64) throws -> [UInt8] {
            let data = try content.object.mapValues { value in
                JSONValue.string(try value.string ?? String(decoding: PushRequest.encode(value), as: UTF8.self))
            }
            let android: JSONValue = ["priority": "HIGH", "ttl": .string("\(seconds)s")]
            let message: JSONValue = .object([
                "token": .string(token), "data": .object(data), "android": android,
            ])
            return try PushRequest.encode(.object(["message": message]))
        }
    }
}
