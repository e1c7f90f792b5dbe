public import ConfigReader
public import ControlWire
internal import HTTPTransport

/// A server that is sent the events of calls: one of `control.webhooks`.
public struct ControlWebhook: Sendable, Equatable {
    /// Where events are sent.
    public var url: String
    /// Signs what is sent.
    public var secret: Secret
    /// Signs it, too, while the server changes from this secret to ``secret``.
    public var previousSecret: Secret?
    /// What is sent.
    public var events: [WebhookEvent]
    /// What kind of process sends it.
    let source: WebhookSource
    /// The file of PEM certificates to trust besides the system's.
    public var trustRoots: String?

    /// Webhooks of a process at most.
    package static let most = 8

    /// The keys of one of `control.webhooks`.
    public struct Keys: ConfigKeys {
        let url = ConfigKey.url("url", schemes: ["https", "http"], "where to; http:// only on this machine").required
        let secret = ConfigKey.secret("secret", suggestsName: true, "signs what is sent: at least 24 bytes").required
        let previousSecret = ConfigKey.secret(
            "previous_secret", "signs it, too, while the server changes to another secret")
        let events = ConfigKey.choices("events", of: WebhookEvent.self, "what is sent").unset("all")
        let trustRoots = ConfigKey.path(
            "trust_roots", readable: true, "PEM certificates to trust besides the system's")

        /// Declares them.
        public init() {}
    }

    init?(_ section: KeyedSection<Keys>, of source: WebhookSource, _ problems: inout [ConfigProblem]) {
        self.source = source
        let url = section.value(\.url, &problems)
        if let url { Self.judge(url, section, &problems) }
        let secret = section.requiredSecret(\.secret, &problems)
        previousSecret = section.value(\.previousSecret, &problems)
        Self.check(secret, at: \.secret, section, &problems)
        Self.check(previousSecret, at: \.previousSecret, section, &problems)
        events = section.value(\.events, &problems) ?? source.events
        for event in events where !source.events.contains(event) {
            let known = source.events.map(\.rawValue).joined(separator: ", ")
            problems.append(
                section.problem(
                    \.events,
                    "\"\(event.rawValue)\" is sent by devices alone; \(source.name) sends \(known)"))
        }
        trustRoots = section.value(\.trustRoots, &problems)
        if let trustRoots { Self.check(trustRoots, section, &problems) }
        guard let url, let secret else { return nil }
        self.url = url
        self.secret = secret
    }

    private static func judge(_ url: String, _ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        do throws(HTTPEndpoint.Malformed) {
            let endpoint = try HTTPEndpoint(url)
            guard !endpoint.isSecure, !endpoint.isLoopback else { return }
            problems.append(section.problem(\.url, "must begin with https://, unless it is on this machine"))
        } catch {
            problems.append(section.problem(\.url, "\"\(error.text)\" is no address of a server: \(error.cause)"))
        }
    }

    private static func check(
        _ secret: Secret?, at key: KeyPath<Keys, ConfigKey<Secret>>, _ section: KeyedSection<Keys>,
        _ problems: inout [ConfigProblem]
    ) {
        guard let secret, WebhookSignature.key(of: secret.revealed) == nil else { return }
        problems.append(
            section.problem(
                key,
                "must hold at least \(WebhookSignature.shortestKey) bytes, as text or as whsec_ and base64; "
                    + "`openssl rand -hex 32` makes some"))
    }

    private static func check(_ path: String, _ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        guard section.fileChecks != .none else { return }
        do throws(TLSTrust.Unreadable) {
            _ = try TLSTrust(trustRootFile: path)
        } catch {
            problems.append(section.problem(\.trustRoots, "\"\(error.path)\": \(error.cause)"))
        }
    }

    /// Reads all of a section.
    ///
    /// - Parameters:
    ///   - key: The webhooks among the section's keys.
    ///   - folder: The folder in which events wait for them, with its key's path.
    public static func all<Section: ConfigKeys>(
        _ section: KeyedSection<Section>, _ key: KeyPath<Section, ConfigKey<[KeyedSection<Keys>]>>,
        of source: WebhookSource, waitingIn folder: (key: String, path: String?), _ problems: inout [ConfigProblem]
    ) -> [ControlWebhook] {
        guard let parts = section.value(key, &problems) else { return [] }
        if folder.path == nil {
            problems.append(section.problem(key, "needs \(folder.key), where events wait for them"))
        }
        if parts.count > most {
            problems.append(section.problem(key, "are \(parts.count), and \(most) are the most"))
        }
        var webhooks: [ControlWebhook] = []
        for part in parts {
            guard let webhook = ControlWebhook(part, of: source, &problems) else { continue }
            if webhooks.contains(where: { $0.url == webhook.url }) {
                problems.append(part.problem(\.url, "is that of an earlier webhook"))
            }
            webhooks.append(webhook)
        }
        return webhooks
    }
}
