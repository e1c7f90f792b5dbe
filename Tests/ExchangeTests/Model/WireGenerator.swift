@testable import ExchangeCore
import JSON
import SignalWire
import TestSupport
import Core

/// Makes up what attackers send: mostly what a client may send, with ids that are theirs, others', over or made up, and now
/// and then what nobody may send.
struct WireGenerator {
    var random: SeededGenerator
    let oracle: Oracle
    /// What attackers can log in with, by whose it is.
    var tokens: [String: [String]] = [:]
    /// Those who attack, whether they have an account just now or not.
    let users: [String]
    static let rooms = ["lobby", "den", "Büro", "密室"]
    static let devices = ["d1", "d2", "d3", "phone"]
    private var lastID: Int64 = 0

    init(seed: UInt64, oracle: Oracle, users: [String]) {
        random = SeededGenerator(seed: seed)
        self.oracle = oracle
        self.users = users
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
    mutating func pick<Item>(_ items: [Item]) -> Item? { items.randomElement(using: &random) }
    mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    // MARK: - Frames

    /// One message on a connection.
    mutating func frame(on connection: ConnectionID) -> Frame {
        lastID += 1
        let seat = oracle.seat(on: connection)
        var frame = Frame(connection: connection, id: .integer(lastID))
        if chance(3) { frame.id = .string(oracle.marker(by: seat?.place.bearer)) }
        frame.method = method(seat)
        frame.params = params(&frame, seat)
        switch number(0...99) {
        case 0...3: spoilName(&frame)
        case 4...5: spoilShape(&frame)
        case 6...7: return garbage(frame)
        default: break
        }
        frame.write()
        if frame.bytes.count > SignalLimits.messageBytes {
            (frame.flaw, frame.markers) = (.tooLarge, [])
        } else if frame.depth > SignalLimits.nesting {
            frame.flaw = .parseError
        }
        return frame
    }

    private mutating func method(_ seat: Oracle.Seat?) -> String {
        guard let seat else { return chance(75) ? "session.start" : pick(ClientRequest.methods) ?? "ping" }
        let common: [String] =
            if !seat.place.bearer.hasAccount {
                ["room.join", "room.signal", "room.signal", "room.leave", "session.renew", "invite.send"]
            } else if !seat.isRegistered {
                ["device.register", "device.register", "room.join", "invite.send"]
            } else {
                [
                    "invite.send", "invite.send", "invite.accept", "invite.accept", "invite.reject", "invite.cancel",
                    "call.signal", "call.signal", "call.probe", "call.end", "room.signal", "group.create",
                    "session.renew",
                ]
            }
        return chance(55) ? pick(common) ?? "ping" : pick(ClientRequest.methods) ?? "ping"
    }

    private mutating func params(_ frame: inout Frame, _ seat: Oracle.Seat?) -> [String: JSONValue] {
        switch frame.method {
        case "session.start": return start(&frame)
        case "session.renew": return ["token": .string(token(like: seat))]
        case "device.register": return registration(&frame, seat)
        case "invite.send": return invite(&frame, seat)
        case "invite.accept", "invite.reject", "invite.cancel", "invite.modify":
            var params: [String: JSONValue] = ["invite": .string(inviteID(seat, owns: frame.method.hasSuffix("l")))]
            if chance(70) { params["data"] = payload(&frame, seat) }
            return params
        case "invite.list": return chance(30) ? ["after": .integer(Int64(number(0...40)))] : [:]
        case "call.signal":
            var params = signal(&frame, seat)
            params["invite"] = .string(inviteID(seat, owns: chance(50)))
            if chance(30) { params["peer"] = .string(user()) }
            return params
        case "call.probe":
            var params: [String: JSONValue] = ["invite": .string(inviteID(seat, owns: chance(50)))]
            if chance(30) { params["peer"] = .string(user()) }
            return params
        case "call.end":
            var params: [String: JSONValue] = [
                "invite": .string(inviteID(seat, owns: chance(50))),
                "reason": .string(chance(90) ? "completed" : "because"), "duration_ms": .integer(Int64(number(-1...9))),
            ]
            if chance(30) { params["peer"] = .string(user()) }
            return params
        default: return chance(50) ? roomParams(&frame, seat) : groupParams(&frame, seat)
        }
    }

    private mutating func roomParams(_ frame: inout Frame, _ seat: Oracle.Seat?) -> [String: JSONValue] {
        switch frame.method {
        case "room.join":
            var params: [String: JSONValue] = ["room": .string(room(seat))]
            if chance(60) { params["data"] = .string(text(&frame, seat, upTo: chance(3) ? 1_200 : 200)) }
            if chance(20) { params["token"] = .string(token(like: seat)) }
            if chance(10) { params["after"] = .integer(Int64(number(0...50))) }
            return params
        case "room.leave": return ["room": .string(room(seat))]
        case "room.signal":
            var params = signal(&frame, seat)
            params["room"] = .string(room(seat))
            if chance(40) { params["to"] = .string(pick(oracle.known[.connection] ?? []) ?? "connection-0") }
            return params
        default: return groupParams(&frame, seat)
        }
    }

    private mutating func groupParams(_ frame: inout Frame, _ seat: Oracle.Seat?) -> [String: JSONValue] {
        switch frame.method {
        case "group.create":
            var params: [String: JSONValue] = [:]
            if chance(50) { params["group"] = .string(groupID()) }
            if chance(50) { params["group"] = .string("g\(text(&frame, seat, upTo: 20))") }
            if chance(50) { params["name"] = .string(text(&frame, seat, upTo: 100)) }
            if chance(80) { params["members"] = .array((0..<number(0...5)).map { _ in .string(user()) }) }
            return params
        case "group.join", "group.leave", "group.dismiss", "group.members": return ["group": .string(groupID())]
        case "group.list": return chance(20) ? ["after": .string(groupID())] : [:]
        case "room.join", "room.leave", "room.signal": return roomParams(&frame, seat)
        default: return [:]
        }
    }

    // MARK: - Members

    private mutating func start(_ frame: inout Frame) -> [String: JSONValue] {
        let user = pick(users) ?? ""
        let token = chance(80) ? pick(tokens[user] ?? []) ?? "none" : anyToken()
        var device = pick(Self.devices) ?? "d1"
        var params: [String: JSONValue] = ["token": .string(token)]
        let grant = oracle.grant(of: token)
        let lost = (oracle.known[.session] ?? []).compactMap { oracle.seats[$0] }
            .filter { $0.connection == nil && $0.user == grant?.1.user && $0.room == grant?.1.room }
        if chance(60), let seat = chance(85) ? pick(lost) : oracle.seats[pick(oracle.known[.session] ?? []) ?? ""] {
            device = chance(95) ? seat.place.device : device
            var after = Int64(clamping: seat.heard)
            if chance(30) { after = max(0, after + Int64(number(-6...3))) }
            if chance(3) { after = pick([0, .max, -1]) ?? 0 }
            if after < 0 { frame.flaw = .invalidParams }
            params["resume"] = ["session": .string(seat.id), "after": .integer(after)]
        } else if chance(10) {
            // An id that nothing is known of any more, or that nobody was given.
            let old = pick(oracle.known[.session] ?? []) ?? "session-00000000000000000000000000000000"
            params["resume"] = ["session": .string(old), "after": .integer(Int64(number(0...30)))]
        }
        params["device"] = description(&frame, device, nil)
        if chance(10) { params["user"] = .string(chance(50) ? user : self.user()) }
        if chance(5) { params["application"] = "app" }
        return params
    }

    private mutating func description(_ frame: inout Frame, _ id: String, _ seat: Oracle.Seat?) -> JSONValue {
        var device: [String: JSONValue] = ["id": .string(id), "name": .string(text(&frame, seat, upTo: 40))]
        device["capabilities"] = chance(20) ? .array((0..<number(0...34)).map { .string("c\($0)") }) : ["audio"]
        if chance(10) { device["push_token"] = .string(text(&frame, seat, upTo: 60, lasts: true)) }
        return .object(device)
    }

    private mutating func registration(_ frame: inout Frame, _ seat: Oracle.Seat?) -> [String: JSONValue] {
        let device = chance(95) ? seat?.place.device ?? "d1" : "other"
        var params: [String: JSONValue] = ["device": description(&frame, device, seat)]
        if chance(50) { params["start"] = chance(50) ? "warm" : "cold" }
        if chance(30) {
            params["push"] = .array(
                (0..<number(0...3)).map { _ in
                    ["kind": "apns", "token": .string(text(&frame, seat, upTo: chance(5) ? 4_200 : 60, lasts: true))]
                })
        }
        return params
    }

    private mutating func invite(_ frame: inout Frame, _ seat: Oracle.Seat?) -> [String: JSONValue] {
        var params: [String: JSONValue] = [
            "to": chance(60) ? .string(user()) : .array((0..<number(0...4)).map { _ in .string(user()) }),
            "ttl": pick([.integer(0), .integer(5), .integer(30), .number(0.25), .integer(3_600), .integer(-1)]) ?? 1,
            "idempotency_key": .string("k\(chance(5) ? 1 : lastID)"),
        ]
        if chance(80) { params["data"] = payload(&frame, seat) }
        if chance(25) { params["payload"] = payload(&frame, seat) }
        if chance(35) { params["timeout_payload"] = chance(10) ? .null : payload(&frame, seat) }
        if chance(20) { params["online_only"] = .bool(chance(60)) }
        if chance(25) {
            let own = (oracle.known[.group] ?? []).filter {
                oracle.groups[$0]?.members.contains(seat?.user ?? "") == true
            }
            let group = chance(85) ? pick(own) ?? groupID() : groupID()
            params["group"] = .string(group)
            if let members = oracle.groups[group]?.members, chance(90) {
                params["to"] = .array(members.filter { _ in chance(60) }.map { .string($0) })
            }
        }
        return params
    }

    private mutating func signal(_ frame: inout Frame, _ seat: Oracle.Seat?) -> [String: JSONValue] {
        var params: [String: JSONValue] = ["type": .string(text(&frame, seat, upTo: chance(3) ? 140 : 30))]
        if chance(70) { params["data"] = payload(&frame, seat, largest: 9_000) }
        return params
    }

    private mutating func user() -> String {
        let named = oracle.names.keys.sorted()
        return chance(90) ? pick(named) ?? "nobody" : pick(["nobody", "guest-1", "vera", "GRACE"]) ?? ""
    }

    private mutating func room(_ seat: Oracle.Seat?) -> String {
        if let bound = seat?.room, chance(80) { return bound }
        return chance(60) ? pick(seat?.rooms.sorted() ?? []) ?? "lobby" : pick(Self.rooms) ?? "lobby"
    }

    private mutating func groupID() -> String { pick(oracle.known[.group] ?? []) ?? "group-none" }

    /// An invite that a device has to do with, or any other.
    private mutating func inviteID(_ seat: Oracle.Seat?, owns: Bool) -> String {
        let known = oracle.known[.invite] ?? []
        let own = known.filter { id in
            guard let seat, let invite = oracle.invites[id] else { return false }
            return owns ? invite.user == seat.user : invite.states[seat.user] != nil
        }
        if chance(75), let id = pick(own) { return id }
        return chance(95) ? pick(known) ?? "invite-none" : "invite-\(number(0...9))"
    }

    private mutating func token(like seat: Oracle.Seat?) -> String {
        chance(40) ? pick(tokens[seat?.user ?? ""] ?? []) ?? anyToken() : anyToken()
    }

    private mutating func anyToken() -> String {
        chance(90) ? pick(tokens[pick(tokens.keys.sorted()) ?? ""] ?? []) ?? "none" : "made up \(lastID)"
    }
}
