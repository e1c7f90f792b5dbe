public import BotWire

/// A WebSocket to which a verb streams a call's sound, as a document names it.
public struct FlowStream: Equatable, Sendable {
    /// Streams that are forked from a call at the same time: its `Start`.
    public static let mostForks = 4
    /// Bytes in a stream's name.
    public static let longestName = 64

    /// A parameter for the server.
    public struct Parameter: Equatable, Sendable {
        /// The same in every call.
        public let name: String
        /// What a call makes of it.
        public let value: FlowText
    }

    /// The server.
    public let url: FlowText
    /// Names the stream in its call; nil for one without a name.
    public let name: String?
    /// What the server receives; a bot that takes part receives what the caller says.
    public let tracks: ForkTracks
    /// For the server, in the document's order.
    public let parameters: [Parameter]
}

/// How a caller is connected with a bot.
public struct FlowConnect: Equatable, Sendable {
    /// The bot.
    public let stream: FlowStream
    /// The document that follows when the bot has left; the next verb if nil.
    public let action: FlowText?
    /// How a server is asked for it.
    public let method: Webhook.Method
}

/// A stream that a call is to have.
public struct FlowStreamOrder: Equatable, Sendable {
    /// The server.
    public let address: WebAddress
    /// For the server.
    public let parameters: [String: String]
    /// What the server receives.
    public let tracks: ForkTracks

    /// Describes a stream.
    public init(to address: WebAddress, parameters: [String: String] = [:], tracks: ForkTracks = .inbound) {
        self.address = address
        self.parameters = parameters
        self.tracks = tracks
    }
}

/// How a bot's part in a call has ended.
public struct FlowStreamEnd: Equatable, Sendable {
    /// The stream.
    public let sid: String
    /// Why it has failed; nil if the bot has left.
    public let failure: String?

    /// Describes an end.
    public init(sid: String, failure: String? = nil) {
        self.sid = sid
        self.failure = failure
    }

    /// Twilio's word for it.
    public var event: String { failure == nil ? "stream-stopped" : "stream-error" }

    /// What a server receives of it.
    func fields(name: String?) -> [FormFields.Field] {
        let own = [FormFields.Field("StreamSid", sid), FormFields.Field("StreamEvent", event)]
        return own + (name.map { [FormFields.Field("StreamName", $0)] } ?? [])
            + (failure.map { [FormFields.Field("StreamError", $0)] } ?? [])
    }
}
