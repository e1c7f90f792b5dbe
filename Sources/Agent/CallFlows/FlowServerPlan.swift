public import BotWire
internal import CallFlow
internal import CallWebhooks
public import ConfigReader

/// The server of a flow, and how it is asked.
public struct FlowServerPlan: Sendable, Equatable {
    /// Asked for the first document.
    public var first: Webhook
    /// Asked once in a call if the server fails, by the same method.
    public var fallback: WebAddress?
    /// Receives reports of the status of calls.
    public var status: WebAddress?
    /// Hosts besides those of these URLs that documents may name: names, addresses, and `*.example.org`.
    public var allowedHosts: [String] = []
    /// For an answer, with look-ups and redirections.
    public var timeout = FlowServerPlan.usualTimeout
    /// Signs requests; nil signs nothing.
    public var secret: Secret?
    /// PEM certificates to trust besides the system's.
    public var trustRoots: String?

    /// Unless the configuration has another one.
    public static let usualTimeout = Duration.seconds(5)
    /// A call waits 30 s for its answer: twice this, for the server and its fallback, and some for the first sound.
    public static let longestTimeout = Duration.seconds(10)
    /// Bytes of a sound.
    public static let longestSound = 8 << 20

    /// Makes a plan with defaults.
    public init(first: Webhook) { self.first = first }

    /// Whether a text can be one of ``allowedHosts``.
    public static func isHost(_ text: String) -> Bool { HostGuard.isHost(text) }

    /// Whether a secret is long enough.
    public static func isSecret(_ secret: Secret) -> Bool { WebhookClient.isSecret(secret.revealed) }

    /// The shortest secret, in bytes.
    public static let shortestSecret = WebhookClient.shortestSecret

    var server: FlowServer { FlowServer(first: first, fallback: fallback.map { Webhook($0, first.method) }) }

    var client: WebhookClient.Plan {
        WebhookClient.Plan(
            own: [first.address.host] + [fallback, status].compactMap { $0?.host }, allowed: allowedHosts,
            section: "behaviour.flow", trustRoots: trustRoots, secret: secret?.revealed)
    }
}
