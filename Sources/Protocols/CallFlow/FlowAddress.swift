public import BotWire

/// Where a document or a sound of a flow is.
public enum FlowAddress: Hashable, Sendable, CustomStringConvertible {
    /// In the flow's folder.
    case file(FlowFileName)
    /// At a server.
    case url(WebAddress)

    /// The file's name, or the URL without its query, which may have a secret.
    public var description: String {
        switch self {
        case .file(let name): name.text
        case .url(let address): address.shown
        }
    }
}

/// The server of a flow, which answers each step of a call with a document.
public struct FlowServer: Equatable, Sendable {
    /// Asked when a call begins.
    public let first: Webhook
    /// Asked once in a call, if the server fails; nil if the call ends then.
    public let fallback: Webhook?

    /// Describes a server.
    public init(first: Webhook, fallback: Webhook? = nil) {
        self.first = first
        self.fallback = fallback
    }
}

/// A request of a flow to its server.
public struct FlowRequest: Equatable, Sendable {
    /// The target and the method.
    public let webhook: Webhook
    /// Whether the call is answered.
    public let isAnswered: Bool
    /// What the verb before has brought, such as `Digits`, beyond the fields that each request has.
    public let result: [FormFields.Field]

    /// Makes a request.
    public init(_ webhook: Webhook, isAnswered: Bool, result: [FormFields.Field] = []) {
        self.webhook = webhook
        self.isAnswered = isAnswered
        self.result = result
    }
}

/// A document that a flow's server has answered.
public struct FlowPage: Equatable, Sendable {
    /// What references in it are resolved against: after redirections of HTTP another one than was asked for.
    public let address: WebAddress
    /// What it says.
    public let document: FlowDocument

    /// Makes one.
    public init(_ document: FlowDocument, at address: WebAddress) {
        self.document = document
        self.address = address
    }
}

/// A recording of the caller that is kept.
public struct FlowRecording: Equatable, Sendable {
    /// Where it is, as URL.
    public let url: String
    /// How long it is.
    public let duration: Duration

    /// Describes a recording.
    public init(url: String, duration: Duration) {
        self.url = url
        self.duration = duration
    }

    /// What a server receives of it.
    func fields(keys: String) -> [FormFields.Field] {
        [
            FormFields.Field("RecordingUrl", url),
            FormFields.Field("RecordingDuration", "\(duration.components.seconds)"),
            FormFields.Field("Digits", keys),
        ]
    }
}
