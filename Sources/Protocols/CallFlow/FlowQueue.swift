public import BotWire
public import Core

/// How a caller waits in a queue.
public struct FlowEnqueue: Equatable, Sendable {
    /// Bytes in the name of a queue.
    public static let longestName = 64

    /// The queue.
    public let queue: FlowText
    /// The document that the caller goes through again and again until it is taken; music or silence if nil.
    public let wait: FlowText?
    /// How a server is asked for it.
    public let waitMethod: Webhook.Method
    /// The document that follows; the next verb if nil.
    public let action: FlowText?
    /// How a server is asked for it.
    public let method: Webhook.Method
}

/// The document that a caller of a queue goes through before it is joined.
public struct FlowWhisper: Equatable, Sendable {
    /// Where it is.
    public let address: FlowAddress
    /// How a server is asked for it.
    public let method: Webhook.Method

    /// Makes one.
    public init(_ address: FlowAddress, _ method: Webhook.Method = .post) {
        self.address = address
        self.method = method
    }
}

/// How the time of a caller in a queue has ended. The names are those of `QueueResult`.
public enum QueueResult: String, CaseIterable, Sendable {
    /// The caller was joined to a call that took it.
    case bridged
    /// The queue is full, or there are too many queues.
    case queueFull = "queue-full"
    /// A user has removed the caller.
    case redirected
    /// The caller has hung up.
    case hangup
    /// The document that the caller heard is wrong.
    case error
    /// The device ends, or takes no more calls.
    case systemError = "system-error"
    /// The document that the caller heard has Leave.
    case leave
    /// The caller has waited for the longest time. TwiML has no such result.
    case timeout
}

/// The place of a caller in a queue.
public struct QueuePlace: Equatable, Sendable {
    /// The queue's identifier.
    public let sid: String
    /// From 1, the next one to be taken.
    public let position: Int
    /// Callers in the queue.
    public let size: Int
    /// Callers that it can have.
    public let most: Int
    /// When the caller has entered it.
    public let since: Instant
    /// The mean of that of all callers in it.
    public let meanSince: Instant

    /// Describes a place.
    public init(sid: String, position: Int, size: Int, most: Int, since: Instant, meanSince: Instant) {
        self.sid = sid
        self.position = position
        self.size = size
        self.most = most
        self.since = since
        self.meanSince = meanSince
    }

    /// What a server receives of it while the caller waits.
    func fields(at now: Instant) -> [FormFields.Field] {
        [
            FormFields.Field("QueueSid", sid),
            FormFields.Field("QueuePosition", "\(position)"),
            FormFields.Field("QueueTime", Self.seconds(since, now)),
            FormFields.Field("AvgQueueTime", Self.seconds(meanSince, now)),
            FormFields.Field("CurrentQueueSize", "\(size)"),
            FormFields.Field("MaxQueueSize", "\(most)"),
        ]
    }

    /// The values of documents while the caller waits.
    func put(into values: inout FlowValues, at now: Instant) {
        values.queueSid = sid
        values.queuePosition = "\(position)"
        values.queueSeconds = Self.seconds(since, now)
        values.averageQueueSeconds = Self.seconds(meanSince, now)
        values.queueSize = "\(size)"
        values.mostQueued = "\(most)"
    }

    private static func seconds(_ from: Instant, _ to: Instant) -> String {
        "\(max(0, from.duration(to: to).components.seconds))"
    }
}

/// What a call goes through a document for.
public enum FlowDocumentRole: Hashable, Sendable {
    /// The flow itself.
    case flow
    /// While the caller waits in a queue.
    case wait
    /// Before the caller of a queue is joined to the call that takes it.
    case whisper

    /// Whether a verb can be in such a document.
    public func admits(_ verb: FlowVerb) -> Bool {
        switch (self, verb) {
        case (.flow, .leave): false
        case (.flow, _): true
        case (.wait, .say), (.wait, .play), (.wait, .pause), (.wait, .gather), (.wait, .redirect), (.wait, .leave),
            (.wait, .hangup):
            true
        case (.wait, .record), (.wait, .dial), (.wait, .enqueue), (.wait, .reject), (.wait, .connect), (.wait, .start),
            (.wait, .stop):
            false
        case (.whisper, .say), (.whisper, .play), (.whisper, .pause), (.whisper, .redirect): true
        case (.whisper, .gather), (.whisper, .record), (.whisper, .dial), (.whisper, .enqueue), (.whisper, .leave),
            (.whisper, .reject), (.whisper, .hangup), (.whisper, .connect), (.whisper, .start), (.whisper, .stop):
            false
        }
    }

    /// Why others cannot, to be read after their element.
    public var refusal: String {
        switch self {
        case .flow: "the caller waits in no queue; Leave is for the document that waitUrl of Enqueue names"
        case .wait:
            "is not supported while the caller waits in a queue; supported there are Gather, Hangup, Leave, Pause, Play, Redirect, Say"
        case .whisper:
            "is not supported before the caller of a queue is joined; supported there are Pause, Play, Redirect, Say"
        }
    }
}
