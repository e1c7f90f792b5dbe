/// Every bound on what bots and their servers send.
public enum WireLimits {
    /// Bytes of one message of a bot: a minute and a half of µ-law in base64.
    public static let messageBytes = 1 << 20
    /// Bytes of sound in one message, when they are decoded.
    public static let payloadBytes = messageBytes / 4 * 3
    /// Values of a message after commas. Each takes up 64 bytes in memory, and its time, where it may have two in the message.
    public static let values = 4_096
    /// Bytes of a command in words, which are read character by character.
    public static let commandBytes = 1_024
    /// Objects and arrays within each other in a message.
    public static let nesting = 16
    /// Bytes in the name of a mark.
    public static let markBytes = 256
    /// Marks that were set and not yet reported. A bot that sets one after each piece of 40 ms may be 40 s ahead.
    public static let marks = 1_024
    /// Telephone keys in one message.
    public static let keys = 32
    /// Faults at once before the wire fails. One more may come every ``faultNanoseconds``.
    public static let faults = 100
    /// The time in which one fault is forgiven: 0.1 s, so that a bot may send ten messages a second that mean nothing here.
    public static let faultNanoseconds: Int64 = 100_000_000

    /// Messages at once before a connection is given up. A WebSocket counts its frames, AudioSocket its own.
    public static let messages = 10_000
    /// Sustained rate of messages, per second.
    public static let messagesPerSecond = 1_000

    /// Bytes of a bot's sound that wait for the 0.68 s of ``AudioPort`` to have room: 4.4 minutes of µ-law, or 65 s at 16 kHz.
    /// With that many no more is read, until half of them are played. The message that reaches the bound is kept as a whole.
    public static let backlogBytes = 1 << 21
    /// The same with ``RealtimeWire``, whose server sends a whole response at once, and says on the same connection that the caller speaks:
    /// 218 s at 24 kHz, which is more than the 4,096 tokens of a response, of 50 ms each.
    public static let realtimeBacklogBytes = 10 << 20
    /// Items of a conversation whose sound is remembered until it is cleared. Of more, the oldest count as played.
    public static let realtimeItems = 64
    /// Bytes that may wait for a bot to read them. With more, the caller's sound is dropped and counted.
    public static let outboundBytes = 1 << 16
    /// Bytes that may wait in all. With more, because the bot does not read the answers to its requests either, the
    /// connection is closed.
    public static let outboundBytesAtMost = 1 << 20
    /// Redirects of a webhook's answer in a row.
    public static let redirects = 10

    /// Parameters of a stream that are passed on to the bot.
    public static let parameters = 64
    /// Bytes of a parameter's name and value together, as at Twilio.
    public static let parameterBytes = 500
    /// Bytes of a URL, as at Twilio.
    public static let addressBytes = 4_000
    /// Bytes of what a webhook answers, as at Twilio.
    public static let markupBytes = 65_536
    /// Bytes of the answer to an offer.
    public static let answerBytes = 65_536
    /// Instructions in what a webhook answers.
    public static let verbs = 32
    /// Bytes of a request's body, and of its path.
    public static let requestBytes = 65_536
    /// Fields of a form.
    public static let fields = 128
    /// Bytes of the name of a call or an account in a request.
    public static let nameBytes = 256
}
