import ConfigReader
import ExchangeCore
import HTTPTransport
import SignalWire
import Core

/// Reading the section `push` of an exchange's configuration.
extension PushConfiguration {
    /// The keys of the section `push`.
    struct Keys: ConfigKeys {
        private static let usual = PushConfiguration()

        let webhooks = ConfigKey.sections("webhooks", PushWebhook.Keys.self, "where pushes go").required
        let requestTime = ConfigKey.seconds("request_seconds", in: 1...60, "how long one request may take")
            .defaulting(to: usual.requestTime)
        let life = ConfigKey.seconds(
            "give_up_seconds", in: 1...86_400, "how long a push is tried; never beyond its invite's end"
        ).defaulting(to: usual.life)
        let parallelRequests = ConfigKey.integer(
            "parallel_requests", in: 1...256, "requests at a time, for each webhook"
        ).defaulting(to: usual.parallelRequests)
        let deadLetterDays = ConfigKey.integer(
            "dead_letter_days", in: 1...3_650, unit: "days",
            "how long pushes that could not be made are kept (`handset push dead`)"
        ).defaulting(to: Int(usual.deadRetention / .seconds(86_400)))
    }

    init(
        _ section: KeyedSection<Keys>, plainText: ExchangeConfiguration.PlainText, _ problems: inout [ConfigProblem]
    ) {
        self.init()
        for webhook in section.value(\.webhooks, &problems) ?? [] {
            guard let read = PushWebhook(webhook, plainText, &problems) else { continue }
            if webhooks.contains(where: { $0.kind == read.kind }) {
                problems.append(webhook.problem(\.kind, "\"\(read.kind)\" has a webhook already"))
            }
            webhooks.append(read)
        }
        section.read(\.requestTime, into: &requestTime, &problems)
        section.read(\.life, into: &life, &problems)
        section.read(\.parallelRequests, into: &parallelRequests, &problems)
        deadRetention = .seconds(86_400 * section.value(\.deadLetterDays, &problems))
    }
}

extension PushWebhook {
    /// The keys of one of `push.webhooks`.
    struct Keys: ConfigKeys {
        let kind = ConfigKey<PushKind>.identifier(
            "kind", "of push tokens, as devices name it; `*` is every kind not named"
        ).required
        let url = ConfigKey.url(
            "url", schemes: ["https", "http"], "where to; http:// only on this machine, or with `plain_text: allowed`"
        ).required
        let shape = ConfigKey.choice("shape", of: Shape.self, "the form of a request")
            .unset("that of the kind's name, or `generic`")
        let secret = ConfigKey.secret("secret", suggestsName: true, "signs what is sent: at least 24 bytes")
        let apnsTopic = ConfigKey.string("apns_topic", "the header `apns-topic`")
        let apnsPushType = ConfigKey.choice("apns_push_type", of: APNsType.self, "the header `apns-push-type`")
            .defaulting(to: .voip)
    }

    fileprivate init?(
        _ section: KeyedSection<Keys>, _ plainText: ExchangeConfiguration.PlainText,
        _ problems: inout [ConfigProblem]
    ) {
        let kind = section.value(\.kind, &problems)
        let url = section.value(\.url, &problems)
        if let url, plainText != .allowed, url.lowercased().hasPrefix("http://"), !Self.isLoopback(url) {
            problems.append(
                section.problem(
                    \.url, "must begin with https://, unless it is on this machine or plain_text is allowed"))
        }
        let shape = section.value(\.shape, &problems)
        let topic = section.value(\.apnsTopic, &problems)
        let secret = section.value(\.secret, &problems).flatMap { Self.key($0.revealed, section, &problems) }
        let type = section.value(\.apnsPushType, &problems)
        guard let kind, let url else { return nil }
        self.init(kind: kind, url: url, shape: shape ?? Shape(rawValue: kind.text) ?? .generic, secret: secret)
        if self.shape != .apns {
            let reason = "is for shape: apns, and the shape is \(self.shape.rawValue); change it, or remove this key"
            section.rejectIdle(\.apnsTopic, reason, &problems)
            section.rejectIdle(\.apnsPushType, reason, &problems)
        }
        apnsTopic = topic
        apnsType = type
    }

    private static func isLoopback(_ url: String) -> Bool {
        let rest = url.dropFirst("http://".count)
        return ["127.0.0.1", "localhost", "[::1]"].contains { host in
            guard rest.lowercased().hasPrefix(host) else { return false }
            return [nil, ":", "/"].contains(rest.dropFirst(host.count).first)
        }
    }

    /// The key in a secret: `whsec_` and base64, as Standard Webhooks writes it, or the text's own bytes.
    private static func key(
        _ text: String, _ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]
    ) -> Redacted<[UInt8]>? {
        guard let bytes = WebhookSignature.key(of: text) else {
            let message =
                "must hold at least 24 bytes, as text or as whsec_ and base64; `openssl rand -hex 32` makes some"
            problems.append(section.problem(\.secret, message))
            return nil
        }
        return Redacted(bytes)
    }
}
