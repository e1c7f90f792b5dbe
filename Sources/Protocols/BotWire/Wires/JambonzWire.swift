internal import JSON

/// The WebSocket of jambonz' verb `listen`, and so of FreeSWITCH's mod_audio_fork, from jambonz' side: linear sound in binary messages.
///
/// Source: jambonz' page "listen", with `passDtmf`, `mixType: mono` and streaming in both directions at one rate.
public struct JambonzWire: VoiceWire, StreamWire {
    /// The rates that there are here. jambonz also has 64 kHz.
    public enum Rate: Int, CaseIterable, Hashable, Sendable {
        /// 8 kHz.
        case hz8000 = 8_000
        /// 16 kHz.
        case hz16000 = 16_000
        /// 24 kHz.
        case hz24000 = 24_000
        /// 48 kHz.
        case hz48000 = 48_000
    }

    var stream: MessageStream<JambonzForm>

    /// Makes one for a call.
    ///
    /// - Parameter rate: The rate of both sides' sound. `playAudio` names its own.
    public init(rate: Rate = .hz8000) { stream = MessageStream(JambonzForm(rate: rate)) }

    /// Servers choose it, or refuse the connection.
    public var subprotocols: [String] { ["audio.jambonz.org"] }
}

/// The messages of jambonz.
struct JambonzForm: SoundForm {
    /// Marks within the stream: those of the bot begin with a letter of their own.
    private enum Mark {
        static let ofBot = "m"
        static let endOfPlay = "p"
    }

    let rate: JambonzWire.Rate

    var callerFormat: WireFormat { .linear(rate.rawValue) }

    func opening(_ call: WireCall) -> [WireMessage] {
        let direction: JSONValue =
            switch call.direction {
            case .incoming: "inbound"
            case .outgoing, .dialled: "outbound"
            }
        let facts: [String: JSONValue] = [
            "callSid": .string(call.call), "callId": .string(call.stream), "accountSid": .string(call.account),
            "from": .string(call.from), "to": .string(call.to), "direction": direction, "callStatus": "in-progress",
            "sampleRate": .integer(Int64(rate.rawValue)), "mixType": "mono",
        ]
        let members = call.parameters.mapValues(JSONValue.string).merging(facts) { _, fact in fact }
        return [members].compactMap(WireMessage.init(json:))
    }

    func message(_ news: StreamNews, at place: StreamPlace) -> WireMessage? {
        switch news {
        case .sound(let bytes): return .binary(bytes)
        // Its duration is in units of RTP's clock, 8 kHz.
        case .digit(let key, let held):
            return WireMessage(json: ["event": "dtmf", "dtmf": .string(String(key)), "duration": .text(held * 8)])
        case .mark(Mark.endOfPlay, let isPlayed): return isPlayed ? WireMessage(json: ["type": "playDone"]) : nil
        case .mark(let mark, let isPlayed):
            return WireMessage(json: [
                "type": "mark",
                "data": ["name": .string(String(mark.dropFirst())), "event": isPlayed ? "playout" : "cleared"],
            ])
        case .cleared, .fault, .stop: return nil
        }
    }

    func orders(inText text: [UInt8], _ call: WireCall) throws(WireFault) -> [BotOrder] {
        let message = try StreamMessage(text)
        switch try message.text("type") {
        case "playAudio":
            let sound = try sound(in: try message.object("data"))
            return [sound, .mark(Mark.endOfPlay)]
        case "killAudio": return [.clear]
        case "mark": return [.mark(Mark.ofBot + (try message.object("data").markName("name")))]
        case "clearMarks": return [.forgetMarks]
        case "disconnect": return [.hangUp]
        default:
            throw WireFault(
                .unknownEvent, "there is no such type; there are playAudio, killAudio, mark, clearMarks and disconnect")
        }
    }

    func reportsAlways(_ mark: String) -> Bool { mark == Mark.endOfPlay }

    private func sound(in data: StreamMessage) throws(WireFault) -> BotOrder {
        guard try data.text("audioContentType") == "raw" else {
            throw WireFault(.wrongFormat, "\"audioContentType\" must be raw; a wav is not read here")
        }
        return try data.sound("audioContent", as: .linear(try sampleRate(of: data).rawValue))
    }

    /// It is a text or a number.
    private func sampleRate(of data: StreamMessage) throws(WireFault) -> JambonzWire.Rate {
        let named = data.value("sampleRate")
        let number = named?.string.flatMap { Int($0) } ?? named?.integer.flatMap { Int(exactly: $0) }
        guard let rate = number.flatMap(JambonzWire.Rate.init(rawValue:)) else {
            throw WireFault(.wrongFormat, "\"sampleRate\" must be 8000, 16000, 24000 or 48000")
        }
        return rate
    }
}
