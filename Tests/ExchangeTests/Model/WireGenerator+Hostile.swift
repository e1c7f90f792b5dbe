import JSON
import SignalWire

/// What correct clients do not send: payloads of any size and depth, names of another form, and what is no message.
extension WireGenerator {
    /// A text with a marker of its own.
    ///
    /// - Parameter lasts: The exchange keeps it for as long as it likes.
    mutating func text(_ frame: inout Frame, _ seat: Oracle.Seat?, upTo bytes: Int, lasts: Bool = false) -> String {
        let marker = oracle.marker(by: seat?.place.bearer, lasts: lasts)
        frame.markers.append(marker)
        let filling = pick(["x", "ß", "\u{4E2D}", "\u{1F469}\u{200D}\u{1F680}", "\"", "\\", "/"]) ?? "x"
        // Names have no control characters; texts are shown to people.
        let room = max(0, bytes - marker.utf8.count) / filling.utf8.count
        return marker + String(repeating: filling, count: chance(30) ? room : 0)
    }

    /// A payload of random size with a marker of its own.
    mutating func payload(_ frame: inout Frame, _ seat: Oracle.Seat?, largest: Int = 70_000) -> JSONValue {
        let marker = oracle.marker(by: seat?.place.bearer)
        frame.markers.append(marker)
        let value: JSONValue
        switch number(0...199) {
        case 0...159: value = .string(marker)
        case 160...184: value = .array([.string(marker), .string(filling(number(100...5_000)))])
        case 185...188: value = .array([.string(marker), .string(filling(largest - number(0...12_000)))])
        case 189: value = .array([.string(marker)] + Array(repeating: .object([:]), count: number(100...900)))
        case 190...193: value = nested(number(40...66), .string(marker))
        default:
            value = [
                "m": .string(marker), "n": .number(1e18), "u": .unsigned(.max), "z": .null,
                "s": "\u{0}\u{202E}e\u{301}",
                "t": "\u{2028}\u{FEFF}\u{7F}", "": .bool(true),
            ]
        }
        return chance(30) ? ["reason": "busy", "v": value] : value
    }

    private mutating func filling(_ bytes: Int) -> String {
        let unit = pick(["x", "ä", "\u{1}", "\"", "\u{1F600}"]) ?? "x"
        // Control characters have six bytes in JSON.
        return String(
            repeating: unit, count: max(0, bytes) / (unit == "\u{1}" ? 6 : unit == "\"" ? 2 : unit.utf8.count))
    }

    private func nested(_ depth: Int, _ value: JSONValue) -> JSONValue {
        (0..<depth).reduce(value) { inner, level in level.isMultiple(of: 2) ? [inner] : ["n": inner] }
    }

    /// Names that no request may have.
    private static let badNames = [
        "", String(repeating: "n", count: 257), "e\u{301}", "a\u{0}b", "a\u{202E}b", "a\u{200B}b", "a\u{200D}b",
        "a\u{FE0F}", "a\u{2028}b", "a\u{E0001}", "a\u{378}", "line\nbreak", "soft\u{AD}hyphen", "\u{212B}", "\u{FEFF}x",
        "a\u{E000}\u{FFFF}", "a\u{A0}b", "a\u{2007}b", "\u{2800}", "a\u{3000}b", "a\u{E000}", " a", "a ",
    ]

    /// Which members of a method are names.
    private static let names: [String: [String]] = [
        "session.start": ["user", "application", "device"], "device.register": ["device"],
        "invite.send": ["to", "group", "idempotency_key"], "invite.accept": ["invite"], "invite.reject": ["invite"],
        "invite.cancel": ["invite"], "invite.modify": ["invite"], "call.signal": ["invite", "peer"],
        "call.probe": ["invite", "peer"], "call.end": ["invite", "peer"], "room.join": ["room"], "room.leave": ["room"],
        "room.signal": ["room", "to"],
        "group.create": ["group", "members"], "group.join": ["group"], "group.leave": ["group"],
        "group.dismiss": ["group"], "group.members": ["group"], "group.list": ["after"],
    ]

    /// Gives one of a request's names another form.
    mutating func spoilName(_ frame: inout Frame) {
        guard let member = pick(Self.names[frame.method] ?? []), let name = pick(Self.badNames) else { return }
        frame.params[member] =
            switch member {
            case "to", "members": .array(["grace", .string(name)])
            case "device": ["id": .string(name), "name": "n", "capabilities": []]
            default: .string(name)
            }
        frame.flaw = .invalidParams
    }

    /// Leaves a member out that must be there, or gives it another type.
    mutating func spoilShape(_ frame: inout Frame) {
        let needed: [String: [String]] = [
            "session.start": ["token", "device"], "session.renew": ["token"], "device.register": ["device"],
            "invite.send": ["to", "ttl", "idempotency_key"], "invite.accept": ["invite"], "invite.reject": ["invite"],
            "invite.cancel": ["invite"], "invite.modify": ["invite"], "call.signal": ["invite", "type"],
            "call.probe": ["invite"], "call.end": ["invite", "reason", "duration_ms"], "room.join": ["room"],
            "room.leave": ["room"],
            "room.signal": ["room", "type"], "group.join": ["group"], "group.leave": ["group"],
            "group.dismiss": ["group"], "group.members": ["group"],
        ]
        guard let member = pick(needed[frame.method] ?? []) else {
            (frame.method, frame.flaw) = ("no.such.method", .unknownMethod)
            return
        }
        frame.params[member] = chance(50) ? nil : pick([.null, .bool(true), .object(["x": 1]), .array([[]])])
        frame.flaw = .invalidParams
    }

    /// What is no request at all.
    mutating func garbage(_ frame: Frame) -> Frame {
        var (frame, text) = (frame, "")
        frame.markers = []
        (text, frame.flaw) =
            switch number(0...8) {
            case 0: ("", .parseError)
            case 1: ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"", .parseError)
            case 2: ("[]", .invalidRequest)
            case 3: ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", .invalidRequest)
            case 4: ("{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}", .invalidRequest)
            case 5: ("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", .invalidRequest)
            case 6: (String(repeating: "[", count: number(65...60_000)), .parseError)
            case 7: ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", .invalidRequest)
            default: ("nul", .parseError)
            }
        frame.bytes = Array(text.utf8)
        if frame.flaw == .parseError, chance(40) {
            frame.bytes = (0..<number(1...200)).map { _ in UInt8.random(in: 0x80...0xFF, using: &random) }
        }
        return frame
    }
}
