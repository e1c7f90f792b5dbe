internal import Core
internal import JSON

/// One service's messages of a stream that are JSON objects with sound in base64.
protocol StreamDialect: Sendable {
    /// The format of the caller's sound.
    var callerFormat: WireFormat { get }
    /// The name of the bot's messages with sound.
    var soundEvent: String { get }
    /// The messages that open the stream, in order. The last has the number 1; those before it have none.
    func opening(_ call: WireCall) -> [[String: JSONValue]]
    /// The caller's sound.
    func media(_ payload: String, _ place: MediaPlace, _ call: WireCall, number: Int) -> [String: JSONValue]
    /// The caller has pressed a key.
    func digit(
        _ key: Character, heldMilliseconds: Int, _ place: MediaPlace, _ call: WireCall, number: Int
    ) -> [String: JSONValue]
    /// A mark was played, or discarded. Nil if the service has no such message.
    func mark(_ name: String, isPlayed: Bool, _ call: WireCall, number: Int) -> [String: JSONValue]?
    /// The queue was cleared. Nil if the service has no such message.
    func cleared(_ call: WireCall, number: Int) -> [String: JSONValue]?
    /// A message of the bot could not be followed; it has no number. Nil if the service has no such message.
    func fault(_ fault: WireFault, _ call: WireCall) -> [String: JSONValue]?
    /// The stream ends. Nil if the service has no such message.
    func stop(_ end: WireEnd, _ call: WireCall, number: Int) -> [String: JSONValue]?
    /// The order in a message of the bot.
    func order(_ message: StreamMessage, _ call: WireCall) throws(WireFault) -> BotOrder
}

extension StreamDialect {
    var soundEvent: String { "media" }
    func cleared(_ call: WireCall, number: Int) -> [String: JSONValue]? { nil }
    func fault(_ fault: WireFault, _ call: WireCall) -> [String: JSONValue]? { nil }
}

/// The messages of a dialect.
struct JSONForm<Dialect: StreamDialect>: StreamForm {
    let dialect: Dialect

    init(_ dialect: Dialect) { self.dialect = dialect }

    var callerFormat: WireFormat { dialect.callerFormat }

    func opening(_ call: WireCall) -> [WireMessage] { dialect.opening(call).compactMap(WireMessage.init(json:)) }

    func messages(_ news: StreamNews, at place: StreamPlace) -> [WireMessage] {
        [members(of: news, at: place)].compactMap(\.self).compactMap(WireMessage.init(json:))
    }

    private func members(of news: StreamNews, at place: StreamPlace) -> [String: JSONValue]? {
        let (call, number) = (place.call, place.number)
        return switch news {
        case .sound(let bytes): dialect.media(Base64.text(bytes), place.media, call, number: number)
        case .digit(let key, let held):
            dialect.digit(key, heldMilliseconds: held, place.media, call, number: number)
        case .mark(let name, let isPlayed): dialect.mark(name, isPlayed: isPlayed, call, number: number)
        case .cleared: dialect.cleared(call, number: number)
        case .fault(let fault): dialect.fault(fault, call)
        case .stop(let end): dialect.stop(end, call, number: number)
        }
    }

    func orders(in message: WireMessage, _ call: WireCall) throws(WireFault) -> [BotOrder] {
        guard case .text(let text) = message else {
            throw WireFault(.malformed, "a message must be text, with sound in base64; this one is binary")
        }
        return [try dialect.order(try StreamMessage(text), call)]
    }

    func mayBeSound(_ message: WireMessage) -> Bool {
        guard case .text(let text) = message else { return true }
        do throws(WireFault) {
            return try StreamMessage(text).textIfAny("event") == dialect.soundEvent
        } catch {
            return true
        }
    }
}
