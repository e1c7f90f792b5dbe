import BotWire
import Foundation
import JSON
import Core

/// A wire on a bench: time stands still unless a test moves it.
struct WireBench {
    static let calls: [String: WireCall] = [
        "twilio": call("CA00000000000000000000000000000001", "MZ00000000000000000000000000000002"),
        "telnyx": call("v3:call", "stream-uuid"), "plivo": call("call-uuid", "stream-uuid"),
        "exotel": call("call-sid", "stream-sid"),
        "audiosocket": call("call", "40325ec2-5efd-4bd3-805f-53576e581d13"),
        "vonage": call("call-uuid", "stream-uuid"), "jambonz": call("call-uuid", "stream-uuid"),
        "asterisk": call("call-uuid", "stream-uuid"), "asterisk-json": call("call-uuid", "stream-uuid"),
    ]

    private static func call(_ call: String, _ stream: String) -> WireCall {
        WireCall(
            call: call, stream: stream, account: "AC00000000000000000000000000000003", from: "+15550100",
            to: "+15550199",
            parameters: ["from_number": "+15550100", "to_number": "+15550199", "who": "Ä \"x\""],
            startMilliseconds: 1_700_000_000_000)
    }

    /// The wires whose messages are JSON.
    static let texts = ["twilio", "telnyx", "plivo", "exotel"]
    /// The wires whose sound is binary messages of a WebSocket.
    static let sounds = ["vonage", "jambonz", "asterisk", "asterisk-json"]
    static let all = texts + sounds + ["audiosocket"]

    let name: String
    var now = Instant.zero
    var wire: any VoiceWire

    /// The call of a wire; of AudioSocket's for any other name, as the wire itself.
    static func facts(of name: String) -> WireCall {
        calls[name] ?? call("call", "40325ec2-5efd-4bd3-805f-53576e581d13")
    }

    init(_ name: String, isOpen: Bool = true) {
        self.name = name
        wire =
            switch name {
            case "twilio": TwilioWire()
            case "telnyx": TelnyxWire()
            case "plivo": PlivoWire()
            case "exotel": ExotelWire()
            case "vonage": VonageWire()
            case "jambonz": JambonzWire()
            case "asterisk": AsteriskWire()
            case "asterisk-json": AsteriskWire(format: .slin16, control: .json)
            default: AudioSocketWire()
            }
        if isOpen { feed(.connected(Self.facts(of: name))) }
    }

    @discardableResult
    mutating func feed(_ input: WireInput) -> [WireOutput] {
        var outbox: [WireOutput] = []
        wire.handle(input, at: now, into: &outbox)
        return outbox
    }

    /// Gives the wire a message of the bot.
    mutating func say(_ text: String) -> [WireOutput] { feed(.message(.text(Array(text.utf8)))) }

    /// A message with sound, in the service's words.
    func media(_ payload: String) -> String {
        name == "plivo"
            ? #"{"event":"playAudio","media":{"contentType":"audio/x-mulaw","sampleRate":8000,"payload":"\#(payload)"}}"#
            : #"{"event":"media","media":{"payload":"\#(payload)"}}"#
    }

    /// A message that sets a mark.
    func mark(_ mark: String) -> String {
        name == "plivo" ? #"{"event":"checkpoint","name":"\#(mark)"}"# : #"{"event":"mark","mark":{"name":"\#(mark)"}}"#
    }

    var clear: String { name == "plivo" ? #"{"event":"clearAudio"}"# : #"{"event":"clear"}"# }
}

extension [WireOutput] {
    /// What is sent as text.
    var texts: [String] {
        var texts: [String] = []
        for case .send(.text(let bytes)) in self { texts.append(String(decoding: bytes, as: UTF8.self)) }
        return texts
    }
    /// The kinds of faults.
    var faults: [WireFault.Kind] {
        var kinds: [WireFault.Kind] = []
        for case .fault(let fault) in self { kinds.append(fault.kind) }
        return kinds
    }
    /// Why the wire has failed.
    var failure: WireFault.Kind? {
        for case .failed(let fault) in self { return fault.kind }
        return nil
    }
    /// All but what is sent.
    var orders: [WireOutput] {
        var orders: [WireOutput] = []
        for output in self {
            if case .send = output { continue }
            orders.append(output)
        }
        return orders
    }
}
