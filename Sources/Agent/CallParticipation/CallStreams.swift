public import AudioPort
public import BotWire

/// A stream that a participant's call is to have, beside the participant.
public struct CallStream: Sendable, Equatable {
    /// The server: a WebSocket that speaks Twilio's Media Streams.
    public var address: WebAddress
    /// For the server.
    public var parameters: [String: String]
    /// The call's name.
    public var callSid: String
    /// The stream's name.
    public var streamSid: String

    /// Describes a stream.
    public init(to address: WebAddress, parameters: [String: String], callSid: String, streamSid: String) {
        self.address = address
        self.parameters = parameters
        self.callSid = callSid
        self.streamSid = streamSid
    }
}

/// What becomes of a stream.
public enum CallStreamReport: Sendable, Equatable {
    /// Something for the log.
    case noted(ParticipantNotice)
    /// The last report: the server has ended it, or it has failed for the reason in the text.
    case ended(failure: String?)
}

/// Connects calls with servers for their participant: with bots that take part, and with servers that only hear.
///
/// All methods return at once and may be called from any thread. Reports come on a thread of this.
public protocol CallStreams: Sendable {
    /// Connects a call with a bot. A call has one at a time.
    ///
    /// - Returns: The bot's sound: the participant runs its frames in the media worker's place.
    func connect(
        _ call: ParticipantCall, to stream: CallStream, tell: @escaping @Sendable (CallStreamReport) -> Void
    ) throws -> PortLine

    /// Delivers a telephone key to the bot of a call.
    func sendDigit(_ digit: Character, heldFor time: Duration, to call: CallID)

    /// Ends the bot's part in a call. No report follows.
    func disconnect(_ call: CallID)

    /// Forks a call's sound to a server.
    func fork(
        _ call: ParticipantCall, to stream: CallStream, _ tracks: ForkTracks,
        tell: @escaping @Sendable (CallStreamReport) -> Void
    ) -> any CallFork

    /// Ends all streams, and frees what serves them.
    func finish() async
}

/// A call's sound on its way to a server that only hears. All methods may be called from any thread.
public protocol CallFork: Sendable {
    /// Samples a second of what it takes.
    var rate: PortRate { get }

    /// Gives the next sound of both sides, which is of the same time and length.
    func give(inbound: [Int16], outbound: [Int16])

    /// Ends it. No report follows.
    func end()
}
