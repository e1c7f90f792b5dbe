import ConfigReader
import FoundationEssentials
import SignalWire
import Timekeeping

/// Reading the section `push` of an exchange's configuration.
extension PushConfiguration {
    init(
        _ section: ConfigSection, plainText: ExchangeConfiguration.PlainText, _ problems: inout [ConfigProblem]
    ) {
        self.init()
        section.require(["webhooks"], &problems)
        for webhook in section.sections("webhooks", &problems) ?? [] {
            guard let read = PushWebhook(webhook, plainText, &problems) else { continue }
            if webhooks.contains(where: { $0.kind == read.kind }) {
                problems.append(webhook.problem("kind", "\"\(read.kind)\" has a webhook already"))
            }
            webhooks.append(read)
        }
        requestTime = section.seconds("request_seconds", in: 1...60, &problems) ?? requestTime
        life = section.seconds("give_up_seconds", in: 1...86_400, &problems) ?? life
        parallelRequests = section.integer("parallel_requests", in: 1...256, &problems) ?? parallelRequests
        let days = section.integer("dead_letter_days", in: 1...3_650, &problems)
        deadRetention = days.map { .seconds(86_400 * $0) } ?? deadRetention
        section.rejectUnknownKeys(
            known: ["webhooks", "request_seconds", "give_up_seconds", "parallel_requests", "dead_letter_days"],
            &problems)
    }
}

extension PushWebhook {
    private static let keys =
        ["kind", "url", "shape", "apns_topic", "apns_push_type", "secret"] + ConfigSection.secretKeys("secret")

    fileprivate init?(
        _ section: ConfigSection, _ plainText: ExchangeConfiguration.PlainText, _ problems: inout [ConfigProblem]
    ) {
        section.require(["kind", "url"], &problems)
        let kind: PushKind? = section.identifier("kind", &problems)
        let url = section.url("url", schemes: ["https", "http"], &problems)
        if let url, plainText != .allowed, url.lowercased().hasPrefix("http://"), !Self.isLoopback(url) {
            problems.append(
                section.problem(
                    "url", "must begin with https://, unless it is on this machine or plain_text is allowed"))
        }
        let shape = section.enumeration("shape", of: Shape.self, &problems)
        let topic = section.string("apns_topic", &problems)
        let type = section.enumeration("apns_push_type", of: APNsType.self, &problems)
        let secret = section.secret("secret", &problems).flatMap { Self.key($0.revealed, section, &problems) }
        section.rejectUnknownKeys(known: Self.keys, &problems)
        guard let kind, let url else { return nil }
        self.init(kind: kind, url: url, shape: shape ?? Shape(rawValue: kind.text) ?? .generic, secret: secret)
        apnsTopic = topic
        apnsType = type ?? apnsType
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
        _ text: String, _ section: ConfigSection, _ problems: inout [ConfigProblem]
    ) -> Redacted<[UInt8]>? {
        let prefix = "whsec_"
        let bytes =
            text.hasPrefix(prefix)
            ? Data(base64Encoded: String(text.dropFirst(prefix.count))).map(Array.init)
            : Array(text.utf8)
        guard let bytes, bytes.count >= 24 else {
            let message =
                "must hold at least 24 bytes, as text or as whsec_ and base64; `openssl rand -hex 32` makes some"
            problems.append(section.problem(section.has("secret_file") ? "secret_file" : "secret_env", message))
            return nil
        }
        return Redacted(bytes)
    }
}
