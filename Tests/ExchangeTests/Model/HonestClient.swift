@testable import ExchangeCore
import JSON
import SignalWire
import Core

/// A correct client: it does what docs/protocol.md says, loses its connection now and then, and calls the other one.
///
/// Nothing that it asks for may fail but for what the page says, whatever attackers do meanwhile.
struct HonestClient {
    let user: String
    private var connection: ConnectionID?
    private var token = ""
    private var session: String?
    private var invite: String?
    private var lastID: Int64 = 0
    private var signals = 0

    init(user: String) { self.user = user }

    private var peer: String { user == "grace" ? "henry" : "grace" }
    private var device: JSONValue { ["id": .string("\(user)'s phone"), "name": "Phone", "capabilities": ["audio"]] }

    /// Logs in, and becomes acquainted with the other one by calling it.
    mutating func begin(_ model: AttackersModel) throws {
        for _ in 0..<100 where invite == nil { try step(model) }
        try model.oracle.require(invite != nil, "\(user) cannot call \(peer)")
    }

    mutating func step(_ model: AttackersModel) throws {
        let oracle = model.oracle
        guard let connection, oracle.open.contains(connection), oracle.closed[connection] == nil,
            let seat = oracle.seat(on: connection)
        else { return try comeBack(model) }
        session = seat.id
        if !seat.isRegistered {
            return try ask("device.register", ["device": device, "start": "warm"], model)
        }
        if oracle.now.advanced(by: .seconds(50)) > seat.tokenEnds {
            token = try model.logIn(user)
            return try ask("session.renew", ["token": .string(token)], model)
        }
        switch model.wire.number(0...99) {
        case 0...2: try model.lose(connection)
        case 3: try ask("presence.subscribe", [:], model)
        case 4: try ask("invite.list", [:], model)
        case 5: try ask("ping", [:], model)
        default: try talk(seat, model)
        }
    }

    private mutating func comeBack(_ model: AttackersModel) throws {
        let oracle = model.oracle
        if oracle.grant(of: token) == nil { token = try model.logIn(user) }
        connection = try model.open()
        var params: [String: JSONValue] = ["token": .string(token), "device": device, "user": .string(user)]
        if let session, let seat = oracle.seats[session] {
            params["resume"] = ["session": .string(session), "after": .integer(Int64(clamping: seat.heard))]
        }
        try ask("session.start", params, model)
    }

    /// The next move in a call between the two.
    private mutating func talk(_ seat: Oracle.Seat, _ model: AttackersModel) throws {
        let oracle = model.oracle
        let known = oracle.invites.values.filter { $0.user == peer && $0.states[user] == .pending && !$0.isOver }
        if let ringing = known.min(by: { $0.id < $1.id }), ringing.inviter != seat.place {
            let method = model.wire.chance(80) ? "invite.accept" : "invite.reject"
            let late: Set<RPCErrorCode> = [.inviteTimedOut, .inviteCancelled]
            return try ask(method, ["invite": .string(ringing.id), "data": data(model)], model, excuses: late)
        }
        let call = oracle.calls.first { _, calls in calls.contains { $0.peer(of: seat.place) != nil } }?.key
        if let call {
            signals += 1
            let isEnd = signals.isMultiple(of: 9)
            var params: [String: JSONValue] = ["invite": .string(call)]
            if isEnd {
                (params["reason"], params["duration_ms"]) = ("completed", 9)
            } else {
                (params["type"], params["data"]) = (.string(marker(model)), "candidate")
            }
            return try ask(isEnd ? "call.end" : "call.signal", params, model)
        }
        let open = oracle.invites.values.count { $0.user == user && !$0.isOver }
        guard open < 3 else { return }
        let key = "call \(lastID)"
        let params: [String: JSONValue] = [
            "to": .string("\(peer)@localhost"), "ttl": 30, "data": data(model), "timeout_payload": data(model),
            "idempotency_key": .string(key),
        ]
        try ask("invite.send", params, model)
        invite = oracle.keys["\(user) \(key)"] ?? invite
    }

    private var markers: [String] = []

    private mutating func marker(_ model: AttackersModel) -> String {
        let marker = model.oracle.marker(by: model.oracle.account(user))
        markers.append(marker)
        return marker
    }

    private mutating func data(_ model: AttackersModel) -> JSONValue { ["text": .string(marker(model))] }

    private mutating func ask(
        _ method: String, _ params: [String: JSONValue], _ model: AttackersModel, excuses: Set<RPCErrorCode> = []
    ) throws {
        guard let connection else { return }
        lastID += 1
        var frame = Frame(connection: connection, id: .integer(lastID), method: method, params: params)
        (frame.markers, frame.excuses) = (markers, excuses)
        markers = []
        frame.write()
        try model.send(frame)
    }

    /// The exchange closes its connection: only for what a correct client gets over by itself.
    func hearsGoodbye(on other: ConnectionID, _ oracle: Oracle) throws {
        guard other == connection, let reason = oracle.closed[other] else { return }
        switch reason {
        case .tokenExpired, .goingDown, .sessionEnded, .notKept: return
        case .policy, .protocolError, .tooBig, .tokenRejected, .loggedOut:
            throw Oracle.Violation(description: "\(user), who did nothing wrong, is closed: \(reason.text)")
        }
    }
}
