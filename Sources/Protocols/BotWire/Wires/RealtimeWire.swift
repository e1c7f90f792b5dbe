internal import Core
internal import JSON

/// The WebSocket of OpenAI's Realtime API (`/v1/realtime`), from the client's side: linear sound at 24 kHz, or G.711.
///
/// The session is configured first, and the bot takes part once its server has confirmed that. The server detects who speaks. When the
/// caller does, what waits is discarded, and the server is sent how much of each item was heard.
///
/// Sources: OpenAI's pages "Realtime conversations" and "Client events"; the types `realtime` and `beta.realtime` of openai-python.
public struct RealtimeWire: VoiceWire, StreamWire {
    /// The formats of sound.
    public enum Format: CaseIterable, Hashable, Sendable {
        /// Linear at 24 kHz.
        case pcm
        /// µ-law at 8 kHz.
        case pcmu
        /// A-law at 8 kHz.
        case pcma

        var wire: WireFormat {
            switch self {
            case .pcm: .linear(24_000)
            case .pcmu: .mulaw
            case .pcma: .alaw
            }
        }
    }

    /// The forms of a session's configuration. Events of both are understood in any case.
    public enum Version: String, CaseIterable, Hashable, Sendable {
        /// The one since general availability.
        case ga
        /// The one before, for which a header asks.
        case beta
    }

    /// How a session is configured.
    public struct Settings: Hashable, Sendable {
        /// The format of both sides' sound.
        public var format: Format
        /// The form of the configuration.
        public var version: Version
        /// The session's configuration, a JSON object (``RealtimeWire/isSession(_:)``); nil for the server's own. The formats of sound are
        /// added to it, and replace those that it has.
        public var session: String?
        /// Whether the bot is asked to speak first.
        public var speaksFirst: Bool
        /// The function by which the bot ends the call; nil if it cannot.
        public var hangUpFunction: String?

        /// Makes settings.
        public init(
            format: Format = .pcm, version: Version = .ga, session: String? = nil, speaksFirst: Bool = false,
            hangUpFunction: String? = nil
        ) {
            self.format = format
            self.version = version
            self.session = session
            self.speaksFirst = speaksFirst
            self.hangUpFunction = hangUpFunction
        }
    }

    var stream: MessageStream<RealtimeForm>

    /// Makes one for a call.
    public init(_ settings: Settings = Settings()) { stream = MessageStream(RealtimeForm(settings)) }

    /// A whole response.
    public var backlogBytes: Int { WireLimits.realtimeBacklogBytes }

    /// Whether a text can be a session's configuration: a JSON object of ``OfferForm/sessionBytes`` at most, that the server can send back
    /// in a message.
    public static func isSession(_ text: String) -> Bool { members(of: text) != nil }

    fileprivate static func members(of session: String) -> [String: JSONValue]? {
        guard session.utf8.count <= OfferForm.sessionBytes,
            case .object(let members)? = JSONValue(nestedAtMost: WireLimits.nesting - 1, Array(session.utf8))
        else { return nil }
        return members
    }
}

/// The events of the Realtime API.
struct RealtimeForm: StreamForm {
    private let settings: RealtimeWire.Settings
    /// The server has confirmed the session.
    private(set) var isReady = false
    /// The caller's speech interrupts the bot.
    private var interrupts = true
    private var playback = RealtimePlayback()

    init(_ settings: RealtimeWire.Settings) { self.settings = settings }

    var callerFormat: WireFormat { settings.format.wire }

    func mayBeSound(_ message: WireMessage) -> Bool { false }

    // MARK: - What the bot is sent

    func opening(_ call: WireCall) -> [WireMessage] {
        [event("session.update", ["session": .object(session)])].compactMap(\.self)
    }

    mutating func messages(_ news: StreamNews, at place: StreamPlace) -> [WireMessage] {
        switch news {
        case .sound(let bytes):
            guard isReady else { return [] }
            return [event("input_audio_buffer.append", ["audio": .string(Base64.text(bytes))])].compactMap(\.self)
        case .cleared(let played): return truncations(played: played)
        // The API has no event for keys, and closing the connection ends a session.
        case .digit, .mark, .fault, .stop: return []
        }
    }

    private func event(_ type: String, _ members: [String: JSONValue] = [:]) -> WireMessage? {
        WireMessage(json: members.merging(["type": .string(type)]) { _, type in type })
    }

    /// The configuration with the formats of sound.
    private var session: [String: JSONValue] {
        var session = settings.session.flatMap(RealtimeWire.members(of:)) ?? [:]
        switch settings.version {
        case .ga:
            session["type"] = "realtime"
            var audio = session["audio"]?.members ?? [:]
            for direction in ["input", "output"] {
                var side = audio[direction]?.members ?? [:]
                side["format"] = .object(settings.format.members)
                audio[direction] = .object(side)
            }
            session["audio"] = .object(audio)
        case .beta:
            session["input_audio_format"] = .string(settings.format.betaName)
            session["output_audio_format"] = .string(settings.format.betaName)
        }
        return session
    }

    /// Reports how much of each item was heard that was discarded.
    private mutating func truncations(played: Int) -> [WireMessage] {
        let (cuts, isOwn) = playback.takeCuts(played: played)
        // The server does not know that the caller has interrupted the bot here.
        let cancel = isOwn && !cuts.isEmpty && !interrupts ? [event("response.cancel")] : []
        let truncations = cuts.map { cut in
            event(
                "conversation.item.truncate",
                [
                    "item_id": .string(cut.item), "content_index": .integer(Int64(cut.content)),
                    "audio_end_ms": .integer(Int64(cut.samples * 1_000 / callerFormat.rateHz)),
                ])
        }
        return (cancel + truncations).compactMap(\.self)
    }

    // MARK: - What the bot sends

    mutating func orders(in message: WireMessage, _ call: WireCall) throws(WireFault) -> [BotOrder] {
        guard case .text(let text) = message else {
            throw WireFault(.malformed, "an event must be text, with sound in base64; this one is binary")
        }
        let event = try StreamMessage(text)
        switch try event.text("type") {
        case "session.updated": return begin(event.value)
        case "response.output_audio.delta", "response.audio.delta": return try sound(in: event)
        case "response.output_audio.done", "response.audio.done":
            playback.finish(try event.text("item_id"))
            return []
        case "input_audio_buffer.speech_started":
            guard interrupts else { return [] }
            playback.clear()
            return [.clear]
        case "response.output_item.done":
            // What the caller has interrupted ends no call, though the server may have it whole.
            guard !playback.isInterrupted(response: event.value["response_id"]?.string ?? "") else { return [] }
            return try functionCall(in: event.value["item"])
        case "response.done": return try end(of: event.value["response"])
        case "error": return try report(event.value["error"])
        // There are many more events, and new ones.
        default: return []
        }
    }

    /// The session is configured.
    private mutating func begin(_ event: JSONValue) -> [BotOrder] {
        let session = event["session"]
        let detection = session?["audio"]?["input"]?["turn_detection"] ?? session?["turn_detection"]
        interrupts = detection != .null && detection?["interrupt_response"] != .bool(false)
        guard !isReady else { return [] }
        let format = session?["audio"]?["output"]?["format"]?["type"] ?? session?["output_audio_format"]
        if let format = format?.string, format != settings.format.name, format != settings.format.betaName {
            return [.fail(WireFault(.wrongFormat, "the server's sound has another format than the session names"))]
        }
        isReady = true
        guard settings.speaksFirst, let create = self.event("response.create") else { return [] }
        return [.send(create)]
    }

    private mutating func sound(in event: StreamMessage) throws(WireFault) -> [BotOrder] {
        guard isReady else { throw WireFault(.early, "the bot has sent sound before it has confirmed the session") }
        let order = try event.sound("delta", as: callerFormat)
        let (item, response) = (try event.text("item_id"), try event.textIfAny("response_id") ?? "")
        guard item.utf8.count <= WireLimits.nameBytes, response.utf8.count <= WireLimits.nameBytes else {
            throw WireFault(.tooLong, "the name of an item or a response has \(WireLimits.nameBytes) bytes at most")
        }
        let content = event.value("content_index")?.integer.flatMap { Int(exactly: $0) } ?? 0
        guard case .play(let bytes, _) = order, !bytes.isEmpty else { return [] }
        let piece = RealtimePlayback.Piece(
            item: item, content: content, samples: bytes.count / callerFormat.sampleBytes)
        return playback.append(piece, of: response) ? [order] : []
    }

    /// A function that the bot calls.
    private func functionCall(in item: JSONValue?) throws(WireFault) -> [BotOrder] {
        guard item?["type"]?.string == "function_call", item?["status"]?.string != "incomplete" else { return [] }
        guard let name = settings.hangUpFunction, item?["name"]?.string == name else {
            throw WireFault(.unknownEvent, "the bot calls a function, and there is none but hang_up_function")
        }
        return [.hangUp]
    }

    private func end(of response: JSONValue?) throws(WireFault) -> [BotOrder] {
        guard response?["status"]?.string == "failed" else { return [] }
        let error = response?["status_details"]?["error"]
        throw WireFault(.farEnd, "the bot's response has failed" + Self.words(of: error))
    }

    private func report(_ error: JSONValue?) throws(WireFault) -> [BotOrder] {
        // The response had ended already.
        if error?["code"]?.string == "response_cancel_not_active" { return [] }
        let fault = WireFault(.farEnd, "the bot's server reports an error" + Self.words(of: error))
        // Nothing but the session's configuration was sent until then.
        guard isReady else { return [.fail(fault)] }
        throw fault
    }

    /// The words of an error that are for programs. Its message may repeat a key.
    private static func words(of error: JSONValue?) -> String {
        let words = ["type", "code", "param"].compactMap { error?[$0]?.string }.filter(isWord)
        let hint = words.contains("invalid_api_key") ? "; see auth_token_file" : ""
        return words.isEmpty ? "" : ": " + words.joined(separator: ", ") + hint
    }

    private static func isWord(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == 0x5F || $0 == 0x2E }
    }
}

/// To which items of the conversation the bot's sound belongs, in the order in which it is played.
struct RealtimePlayback: Sendable {
    /// A piece of sound of one item, or what is to be kept of it.
    struct Piece: Equatable, Sendable {
        let item: String
        /// Index of the sound in the item's contents.
        let content: Int
        var samples: Int
    }

    private struct Item: Sendable {
        var piece: Piece
        let response: String
        /// No more sound of it comes.
        var isDone = false
    }

    /// Behind the newest order to clear.
    private var items: [Item] = []
    /// For each order to clear that was not carried out yet, what it discards, oldest first.
    private var discarded: [[Item]] = []
    /// Samples that were played before the oldest item.
    private var played = 0
    /// The response that was interrupted, of which nothing more is played.
    private var interrupted: String?

    /// Takes sound.
    ///
    /// - Returns: Whether it is to be played.
    mutating func append(_ piece: Piece, of response: String) -> Bool {
        guard response.isEmpty || response != interrupted else { return false }
        if let last = items.last, last.piece.item == piece.item, last.piece.content == piece.content {
            items[items.count - 1].piece.samples += piece.samples
            return true
        }
        items.append(Item(piece: piece, response: response))
        if items.count > WireLimits.realtimeItems { played += items.removeFirst().piece.samples }
        return true
    }

    /// No more sound of an item comes.
    mutating func finish(_ item: String) {
        for index in items.indices where items[index].piece.item == item { items[index].isDone = true }
    }

    /// All sound so far is to be discarded.
    mutating func clear() {
        interrupted = items.last?.response ?? interrupted
        discarded.append(items)
        items = []
    }

    /// Whether a response was interrupted, by the caller or by the server.
    func isInterrupted(response: String) -> Bool { !response.isEmpty && response == interrupted }

    /// The sound was discarded.
    ///
    /// - Parameter played: Samples of all sound that were played until then.
    /// - Returns: The items that were not heard to their end, with the samples that were heard, and the last one if more of it may have
    ///   been on its way; and whether the queue was cleared without an order.
    mutating func takeCuts(played: Int) -> (cuts: [Piece], isOwn: Bool) {
        let isOwn = discarded.isEmpty
        if isOwn { clear() }
        var rest = max(0, played - self.played)
        self.played = max(self.played, played)
        var cuts: [Piece] = []
        let items = discarded.removeFirst()
        for (index, item) in items.enumerated() {
            let heard = min(rest, item.piece.samples)
            rest -= heard
            let isGrowing = index == items.count - 1 && !item.isDone
            guard heard < item.piece.samples || isGrowing else { continue }
            cuts.append(Piece(item: item.piece.item, content: item.piece.content, samples: heard))
        }
        return (cuts, isOwn)
    }
}

extension RealtimeWire.Format {
    /// The value of `format`.
    fileprivate var members: [String: JSONValue] {
        switch self {
        case .pcm: ["type": "audio/pcm", "rate": 24_000]
        case .pcmu: ["type": "audio/pcmu"]
        case .pcma: ["type": "audio/pcma"]
        }
    }

    fileprivate var name: String {
        switch self {
        case .pcm: "audio/pcm"
        case .pcmu: "audio/pcmu"
        case .pcma: "audio/pcma"
        }
    }

    /// The value of `input_audio_format`.
    fileprivate var betaName: String {
        switch self {
        case .pcm: "pcm16"
        case .pcmu: "g711_ulaw"
        case .pcma: "g711_alaw"
        }
    }
}

extension JSONValue {
    /// The members, if this is an object.
    fileprivate var members: [String: JSONValue]? {
        guard case .object(let members) = self else { return nil }
        return members
    }
}
