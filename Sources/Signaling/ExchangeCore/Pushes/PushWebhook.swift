public import SignalWire

/// Where pushes by one kind of token go, and in what form (docs/push.md).
public struct PushWebhook: Sendable {
    /// The form of a request.
    public enum Shape: String, CaseIterable, Sendable {
        /// As Apple's push service takes it.
        case apns
        /// As Firebase Cloud Messaging takes it (HTTP v1).
        case fcm
        /// Everything in one object.
        case generic
    }

    /// What an APNs notification is, by its header `apns-push-type`.
    public enum APNsType: String, CaseIterable, Sendable {
        case voip, alert, background
    }

    /// Matches every kind that has no webhook of its own.
    public static let anyKind: PushKind = "*"

    /// The kind of push tokens, as devices name it, or ``anyKind``.
    public var kind: PushKind
    /// Where to; for `apns` without the path `/3/device/TOKEN`.
    public var url: String
    /// In what form.
    public var shape: Shape
    /// What requests are signed with; `nil` for not at all.
    public var secret: Redacted<[UInt8]>?
    /// The header `apns-topic`.
    public var apnsTopic: String?
    /// The header `apns-push-type`.
    public var apnsType = APNsType.voip

    /// Names a webhook.
    public init(kind: PushKind, url: String, shape: Shape, secret: Redacted<[UInt8]>? = nil) {
        self.kind = kind
        self.url = url
        self.shape = shape
        self.secret = secret
    }
}

/// How pushes are made.
public struct PushConfiguration: Sendable {
    /// The webhooks that receive pushes; if empty, pushes are off.
    public var webhooks: [PushWebhook] = []
    /// How long one request may take.
    public var requestTime = Duration.seconds(10)
    /// How long a push is tried at most.
    public var life = Duration.seconds(3_600)
    /// Requests to one webhook at a time.
    public var parallelRequests = 16
    /// How long pushes that could not be made are kept to be looked at.
    public var deadRetention = Duration.seconds(30 * 86_400)

    /// The defaults: pushes are off.
    public init() {}

    /// The webhook for a kind of token.
    package func webhook(for kind: PushKind) -> PushWebhook? {
        webhooks.first { $0.kind == kind } ?? webhooks.first { $0.kind == PushWebhook.anyKind }
    }
}
