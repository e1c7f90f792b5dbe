internal import JSON

/// Asterisk's WebSocket channel (chan_websocket), from Asterisk's side: sound in binary messages, and control in texts.
///
/// Source: Asterisk's page "WebSocket" among the channel drivers, and the driver's texts as of Asterisk 23. Sound of any length is taken,
/// so that `START_MEDIA_BUFFERING` changes nothing, and nothing is lost when much waits, so that `MEDIA_XOFF` never comes.
public struct AsteriskWire: VoiceWire, StreamWire {
    /// The formats that there are here, by Asterisk's names.
    public enum Format: String, CaseIterable, Hashable, Sendable {
        case ulaw, alaw, slin, slin16, slin24, slin48

        var wire: WireFormat {
            switch self {
            case .ulaw: .mulaw
            case .alaw: .alaw
            case .slin: .linear(8_000)
            case .slin16: .linear(16_000)
            case .slin24: .linear(24_000)
            case .slin48: .linear(48_000)
            }
        }

        /// Bytes in 20 ms.
        var frameBytes: Int { wire.rateHz / 50 * wire.sampleBytes }
    }

    /// How control messages are written: `f(json)` in Asterisk's dial string chooses JSON.
    public enum Control: String, CaseIterable, Hashable, Sendable {
        /// Words, and members as `name:value`.
        case plain
        /// JSON objects.
        case json
    }

    var stream: MessageStream<AsteriskForm>

    /// Makes one for a call.
    ///
    /// - Parameters:
    ///   - format: The format of both sides' sound.
    ///   - control: How control messages are written, in both directions.
    public init(format: Format = .ulaw, control: Control = .plain) {
        stream = MessageStream(AsteriskForm(format: format, control: control))
    }

    /// The one of Asterisk's own server, and of the clients that are configured as its page says.
    public var subprotocols: [String] { ["media"] }
}

/// The messages of chan_websocket.
struct AsteriskForm: SoundForm {
    /// What a mark is reported as; the rest of its name is the bot's.
    private enum Report: Character {
        case mark = "m"
        case buffered = "b"
        case drained = "q"
    }

    let format: AsteriskWire.Format
    let control: AsteriskWire.Control

    var callerFormat: WireFormat { format.wire }

    // MARK: - What the bot is sent

    func opening(_ call: WireCall) -> [WireMessage] {
        var members: [(String, JSONValue)] = [
            ("connection_id", .string(call.stream)), ("channel", .string("WebSocket/\(call.stream)")),
            ("channel_id", .string(call.call)), ("format", .string(format.rawValue)),
            ("optimal_frame_size", .integer(Int64(format.frameBytes))), ("ptime", 20),
        ]
        if control == .json {
            members.append(("channel_variables", .object(call.parameters.mapValues(JSONValue.string))))
        }
        return [event("MEDIA_START", members)].compactMap(\.self)
    }

    func message(_ news: StreamNews, at place: StreamPlace) -> WireMessage? {
        let channel = ("channel_id", JSONValue.string(place.call.call))
        switch news {
        case .sound(let bytes): return .binary(bytes)
        case .digit(let key, _): return event("DTMF_END", [("digit", .string(String(key))), channel])
        // FLUSH_MEDIA discards what was to be reported, too.
        case .mark(let name, isPlayed: true): return report(name, channel)
        case .mark(_, isPlayed: false), .cleared, .stop: return nil
        case .fault(let fault): return event("ERROR", [channel, ("error_text", .string(fault.description))])
        }
    }

    private func report(_ mark: String, _ channel: (String, JSONValue)) -> WireMessage? {
        let name = String(mark.dropFirst())
        return switch mark.first.flatMap(Report.init(rawValue:)) {
        case .mark: correlated("MEDIA_MARK_PROCESSED", name, channel)
        case .buffered: correlated("MEDIA_BUFFERING_COMPLETED", name, channel)
        case .drained: control == .json ? event("QUEUE_DRAINED", [channel]) : event("QUEUE_DRAINED", [])
        case nil: nil
        }
    }

    private func correlated(_ name: String, _ id: String, _ channel: (String, JSONValue)) -> WireMessage? {
        switch control {
        case .json: event(name, [channel, ("correlation_id", .string(id))])
        case .plain: .text(Array((id.isEmpty ? name : "\(name) \(id)").utf8))
        }
    }

    private func event(_ name: String, _ members: [(String, JSONValue)]) -> WireMessage? {
        switch control {
        case .json: WireMessage(json: Dictionary([("event", .string(name))] + members) { first, _ in first })
        case .plain:
            .text(Array(([name] + members.map { "\($0.0):\($0.1.word)" }).joined(separator: " ").utf8))
        }
    }

    // MARK: - What the bot sends

    func orders(inText text: [UInt8], _ call: WireCall) throws(WireFault) -> [BotOrder] {
        let (command, id) = try command(in: text)
        switch command {
        // The call is answered when the bot is connected.
        case "ANSWER", "START_MEDIA_BUFFERING": return []
        case "HANGUP": return [.hangUp]
        case "FLUSH_MEDIA": return [.clear]
        case "MARK_MEDIA": return [mark(.mark, id)]
        case "STOP_MEDIA_BUFFERING": return [mark(.buffered, id)]
        case "REPORT_QUEUE_DRAINED": return [mark(.drained, "")]
        default:
            throw WireFault(
                .unknownEvent,
                "there is no such command here; there are ANSWER, HANGUP, START_MEDIA_BUFFERING, STOP_MEDIA_BUFFERING, MARK_MEDIA, "
                    + "FLUSH_MEDIA and REPORT_QUEUE_DRAINED")
        }
    }

    private func mark(_ report: Report, _ id: String) -> BotOrder { .mark(String(report.rawValue) + id) }

    /// A command, and the name by which its outcome is reported.
    private func command(in text: [UInt8]) throws(WireFault) -> (String, String) {
        let (command, id): (String, String)
        switch control {
        case .json:
            let message = try StreamMessage(text)
            (command, id) = (try message.text("command"), try message.textIfAny("correlation_id") ?? "")
        case .plain:
            guard text.count <= WireLimits.commandBytes else {
                throw WireFault(.tooLong, "a command has \(WireLimits.commandBytes) bytes at most")
            }
            let words = String(decoding: text, as: UTF8.self).split(separator: " ", maxSplits: 1)
            guard let first = words.first else { throw WireFault(.malformed, "a text must be a command") }
            command = first.trimmingSuffix(while: \.isWhitespace)
            id = words.count > 1 ? words[1].trimmingSuffix(while: \.isWhitespace) : ""
        }
        guard id.utf8.count <= WireLimits.markBytes else {
            throw WireFault(.tooLong, "the name of a mark has \(WireLimits.markBytes) bytes at most")
        }
        return (command, id)
    }
}

extension JSONValue {
    /// A text or a whole number as a word.
    fileprivate var word: String { string ?? integer.map { String($0) } ?? "" }
}

extension Substring {
    fileprivate func trimmingSuffix(while isTrimmed: (Character) -> Bool) -> String {
        var rest = self
        while let last = rest.last, isTrimmed(last) { rest.removeLast() }
        return String(rest)
    }
}
