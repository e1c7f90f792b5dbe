@testable import ControlPlane
@testable import ExchangeServer
import ConfigReader
import ControlWire
import Core
import ExchangeCore
import Foundation
import JSON
import SignalSupport
import SignalWire
import Testing

/// An operator at a running exchange, on its socket and on TCP.
@Suite("An exchange's control interface", .timeLimit(.minutes(1))) struct ControlTests {
    private static let token = "0123456789abcdef0123456789abcdef"

    private func withExchange(
        tcp: Bool = false, _ body: (ExchangeServer, ControlHTTPClient) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("x-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var control = ControlSection(.exchange, socket: "\(folder)/s")
        if tcp {
            control.network = ControlNetwork(
                section: "control", listen: ConfigEndpoint(host: "127.0.0.1", port: 0), token: Secret(Self.token),
                certificate: nil, allowedHosts: [], allowedOrigins: [])
        }
        var configuration = ServerFixture.configuration()
        configuration.control = control
        try await ServerFixture.withServer(configuration) { server in
            try await body(server, ControlHTTPClient(path: "\(folder)/s", owner: .exchange))
        }
    }

    private func code(_ answer: ControlHTTPClient.Answer) -> String { "\(answer.status) \(answer.fault.code.rawValue)" }

    @Test("It lists users, invites and calls, and ends an invite and a call for both devices")
    func course() async throws {
        try await withExchange { server, client in
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            let bob = try await ServerFixture.device("b", of: "bob", port: server.port)
            let users = try await client.ask("GET", "/v1/users").value(ExchangeWire.Page<ExchangeWire.User>.self)
            #expect(users.entries.map(\.user) == ["alice", "bob"] && users.next == nil)
            #expect(users.entries[1].devices.map(\.device) == ["b"])

            let first = try await alice.call(InviteSend(to: ["bob"], ttl: 30, idempotencyKey: "1")).invite
            let invites = try await client.ask("GET", "/v1/invites?limit=1")
                .value(ExchangeWire.Page<ExchangeWire.Invite>.self)
            #expect(invites.entries.map(\.invite) == [first.text] && invites.entries[0].pending == ["bob"])
            let done = try await client.ask("POST", "/v1/invites/\(first)/cancel").value(ExchangeWire.Done.self)
            #expect(done.ended == 1)
            _ = try await bob.event()
            #expect(try await bob.event() == .inviteTimedOut(InviteTimedOut(invite: first, invitees: ["bob"])))
            #expect(try await alice.event() == .inviteTimedOut(InviteTimedOut(invite: first, invitees: ["bob"])))
            #expect(try await alice.event() == .inviteEnded(InviteEnded(invite: first)))
            #expect(code(try await client.ask("POST", "/v1/invites/\(first)/cancel")) == "409 wrong_state")

            let second = try await alice.call(InviteSend(to: ["bob"], ttl: 30, idempotencyKey: "2")).invite
            _ = try await bob.call(InviteAccept(invite: second, data: nil))
            let calls = try await client.ask("GET", "/v1/calls").value(ExchangeWire.Page<ExchangeWire.Call>.self)
            #expect(calls.entries.map(\.invite) == [second.text] && calls.entries[0].withDevice == "b")
            #expect(try await client.ask("POST", "/v1/calls/\(second)/hangup").status == 200)
            for device in [alice, bob] {
                var isEnded = false
                while !isEnded {
                    if case .callEnded(let end) = try await device.event() { isEnded = end.reason == "disconnected" }
                }
            }
            #expect(code(try await client.ask("POST", "/v1/calls/\(second)/hangup")) == "404 no_such_call")
        }
    }

    @Test("A user that is logged out is disconnected, and the state counts what there is")
    func logOut() async throws {
        try await withExchange { server, client in
            let bob = try await ServerFixture.device("b", of: "bob", port: server.port)
            let before = try await client.ask("GET", "/v1/status").value(ExchangeWire.Status.self)
            #expect(before.users == 2 && before.sessions == 1 && before.obstacles.isEmpty)
            #expect(before.counters["sessions"] == 1)
            #expect(try await client.ask("POST", "/v1/users/bob/logout").value(ExchangeWire.Done.self).ended == 1)
            await #expect(throws: RPCClient.Unexpected.self) { while true { _ = try await bob.event() } }
            let after = try await client.ask("GET", "/v1/status").value(ExchangeWire.Status.self)
            #expect(after.sessions == 0)
            #expect(code(try await client.ask("POST", "/v1/users/nobody/logout")) == "404 no_such_user")
            let body = Array(#"{"device":"b"}"#.utf8)
            #expect(code(try await client.ask("POST", "/v1/users/bob/logout", body: body)) == "404 no_such_device")
        }
    }

    @Test("A user is taken out of a room and a group, and asked to move, for its device to hear")
    func memberships() async throws {
        try await withExchange { server, client in
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            let bob = try await ServerFixture.device("b", of: "bob", port: server.port)
            _ = try await alice.call(GroupCreate(group: "the team", members: ["bob"]))
            for device in [alice, bob] { _ = try await device.call(RoomJoin(room: "main lobby")) }
            func ask(_ path: String, _ body: String) async throws -> ControlHTTPClient.Answer {
                try await client.ask("POST", path, body: Array(body.utf8))
            }
            let room = "/v1/rooms/main%20lobby/remove"
            #expect(try await ask(room, #"{"user":"bob"}"#).value(ExchangeWire.Done.self).ended == 1)
            let group = "/v1/groups/the%20team/remove"
            #expect(try await ask(group, #"{"user":"bob"}"#).value(ExchangeWire.Done.self).ended == 1)
            let move = "/v1/users/bob/move"
            let address = "wss://other.example.org/v1/rtc"
            let moved = try await ask(move, #"{"device":"b","within_s":7,"url":"\#(address)"}"#)
            #expect(try moved.value(ExchangeWire.Asked.self).asked == 1)
            var heard: [String] = []
            while heard.last != "moveRequested" {
                switch try await bob.event() {
                case .connectionDestroyed(let end): heard.append("\(end.room) \(end.reason)")
                case .groupChanged(let change): heard.append("\(change.group) \(change.change.rawValue)")
                case .moveRequested(let asked):
                    #expect(asked.withinSeconds == 7 && asked.webSocketURL == address)
                    heard.append("moveRequested")
                default: continue
                }
            }
            #expect(heard == ["the team created", "main lobby removed", "the team left", "moveRequested"])
            let events = try await received(by: client, "/v1/events?after=oldest", until: "move_requested")
            let orders = events.filter { ["removed", "move_requested"].contains($0.name) }.map(\.json)
            #expect(orders.count == 3 && orders.allSatisfy { $0.contains(#""user":"bob""#) }, "\(orders)")
            #expect(orders[0].contains(#""room":"main lobby""#) && orders[0].contains(#""device":"b""#))
            #expect(orders[1].contains(#""group":"the team""#) && orders[2].contains(#""device":"b""#))
            #expect(code(try await ask(room, #"{"user":"bob"}"#)) == "404 no_such_member")
            #expect(code(try await ask("/v1/rooms/attic/remove", #"{"user":"bob"}"#)) == "404 no_such_room")
            #expect(code(try await ask(group, #"{"user":"alice"}"#)) == "409 wrong_state")
            #expect(code(try await ask("/v1/groups/none/remove", #"{"user":"bob"}"#)) == "404 no_such_group")
            #expect(code(try await ask(room, "{}")) == "422 wrong_value")
            #expect(code(try await ask(move, #"{"within_s":3601}"#)) == "422 wrong_value")
            #expect(code(try await ask(move, #"{"url":"https://calls.example.org"}"#)) == "422 wrong_value")
            #expect(code(try await ask("/v1/users/nobody/move", "{}")) == "404 no_such_user")
        }
    }

    @Test("Events come with cursors; after a cursor of another exchange comes a gap, and then what is kept")
    func events() async throws {
        try await withExchange { server, client in
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            let bob = try await ServerFixture.device("b", of: "bob", port: server.port)
            let invite = try await alice.call(
                InviteSend(to: ["bob"], data: ["secret": "data"], ttl: 30, idempotencyKey: "1")
            ).invite
            _ = try await bob.call(InviteAccept(invite: invite, data: nil))
            _ = try await client.ask("POST", "/v1/calls/\(invite)/hangup")
            let cursor = "00000000000000ff-7"
            let events = try await received(by: client, "/v1/events?after=\(cursor)", until: "call_ended")
            #expect(events.map(\.name) == ["gap", "login", "login", "invite", "call_started", "call_ended"])
            #expect(events[0].json.contains("unknown_cursor"))
            #expect(events.allSatisfy { $0.cursor != nil && !$0.json.contains("secret") })
            #expect(events[5].json.contains(#""users":["alice","bob"]"#) && events[5].json.contains("operator"))
            let next = try #require(events[3].cursor)
            let rest = try await received(by: client, "/v1/events?after=\(next)", until: "call_ended")
            #expect(rest == Array(events[4...]))
        }
    }

    private func received(
        by client: ControlHTTPClient, _ target: String, until last: String
    ) async throws -> [ControlHTTPClient.Event] {
        let (stream, events) = AsyncStream.makeStream(of: ControlHTTPClient.Event.self)
        let task = Task {
            let answer = try await client.receive(target) { events.yield($0) }
            events.finish()
            return answer
        }
        defer { task.cancel() }
        var found: [ControlHTTPClient.Event] = []
        for await event in stream {
            found.append(event)
            if event.name == last { break }
        }
        return found
    }

    @Test("An answer to a request that is sent again with its key is the first one")
    func idempotency() async throws {
        try await withExchange(tcp: true) { server, client in
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            _ = try await ServerFixture.device("b", of: "bob", port: server.port)
            let invite = try await alice.call(InviteSend(to: ["bob"], ttl: 30, idempotencyKey: "1")).invite
            let port = try #require(server.controlPort)
            let headers = ["Authorization": "Bearer \(Self.token)", "Idempotency-Key": "k"]
            for _ in 0..<2 {
                let raw = try await RawClient.connect(port: port)
                defer { raw.close() }
                let answer = await raw.request("POST", "/v1/invites/\(invite)/cancel", headers)
                #expect(answer.status == 200 && answer.body.contains(#""ended":1"#))
            }
        }
    }

    @Test("What is wrong with a request is said as a problem, and nothing is done")
    func problems() async throws {
        try await withExchange { _, client in
            func ask(_ method: String, _ target: String, _ body: String = "") async throws -> String {
                code(try await client.ask(method, target, body: Array(body.utf8)))
            }
            #expect(try await ask("GET", "/v1/nothing") == "404 not_found")
            #expect(try await ask("GET", "/v1/users/bob/logout") == "405 method_not_allowed")
            #expect(try await ask("POST", "/v1/users") == "405 method_not_allowed")
            #expect(try await ask("GET", "/v1/users?limit=0") == "422 wrong_value")
            #expect(try await ask("GET", "/v1/users?limit=101") == "422 wrong_value")
            #expect(try await ask("GET", "/v1/users?user=bob") == "422 wrong_value")
            #expect(try await ask("GET", "/v1/invites?after=nonsense") == "422 wrong_value")
            let long = String(repeating: "0", count: 1_025)
            #expect(try await ask("GET", "/v1/users?after=\(long)") == "422 wrong_value")
            #expect(try await client.ask("GET", "/v1/users?after=\(long.dropLast())").status == 200)
            #expect(try await ask("GET", "/v1/events?after=nonsense") == "422 wrong_value")
            #expect(try await ask("GET", "/v1/users?token=x") == "400 token_in_url")
            #expect(try await ask("POST", "/v1/users/bob/logout", "{") == "400 malformed")
            #expect(try await ask("POST", "/v1/users/bob/logout", #"{"device":7}"#) == "422 wrong_value")
            #expect(try await ask("POST", "/v1/users/bob/logout", #"{"devices":"b"}"#) == "422 wrong_value")
            #expect(try await ask("POST", "/v1/users/%FF/logout") == "422 wrong_value")
            #expect(try await ask("POST", "/v1/invites/none/cancel") == "404 no_such_invite")
            let description = try await client.ask("GET", "/v1/openapi.json")
            #expect(description.status == 200 && String(decoding: description.body, as: UTF8.self).contains("3.1.0"))
        }
    }

    @Test("On TCP it needs the token and its own name, and no request is carried out without them")
    func network() async throws {
        try await withExchange(tcp: true) { server, _ in
            let port = try #require(server.controlPort)
            func status(_ headers: [String: String], _ target: String = "/v1/status", body: String = "") async throws
                -> Int
            {
                let raw = try await RawClient.connect(port: port)
                defer { raw.close() }
                return await raw.request(body.isEmpty ? "GET" : "POST", target, headers, body: body).status
            }
            let bearer = "Bearer \(Self.token)"
            #expect(try await status(["Authorization": bearer]) == 200)
            #expect(try await status([:]) == 401)
            #expect(try await status(["Authorization": "Bearer wrong"]) == 401)
            #expect(try await status(["Authorization": bearer, "Host": "evil.example"]) == 421)
            #expect(try await status(["Authorization": bearer, "Origin": "https://evil.example"]) == 403)
            let long = String(repeating: "x", count: 100_000)
            let headers = ["Authorization": bearer, "Content-Type": "application/json"]
            #expect(try await status(headers, "/v1/users/bob/logout", body: long) == 413)
            #expect(try await status(["Authorization": bearer]) == 200)
        }
    }

    @Test("A socket at which another exchange listens is not taken, and the error says so")
    func inUse() async throws {
        try await withExchange { server, client in
            var configuration = ServerFixture.configuration()
            let path = try #require(Mirror(reflecting: client).descendant("place", "socket") as? String)
            configuration.control = ControlSection(.exchange, socket: path)
            let error = await #expect(throws: ExchangeError.self) {
                try await ServerFixture.withServer(configuration) { _ in }
            }
            #expect(error?.code == .portInUse && error?.description.contains("give this exchange another path") == true)
            #expect(try await client.ask("GET", "/v1/status").status == 200)
        }
    }
}
