internal import ArgumentParser
internal import ControlPlane
internal import ControlWire
internal import Core
internal import ExchangeServer

/// At which socket an exchange that runs is reached.
struct ExchangePlace: ParsableArguments {
    @Option(help: "The exchange's configuration file, which names the socket.", completion: .file())
    var config: String?

    @Option(help: "The exchange's control socket.", completion: .file())
    var socket: String?

    func validate() throws {
        if socket != nil, config != nil { throw ValidationError("--socket and --config exclude each other.") }
    }

    func client() throws -> ControlHTTPClient { ControlHTTPClient(path: try path(), owner: .exchange) }

    private func path() throws -> String {
        if let socket { return socket }
        guard let config else { return ExchangeControlConfiguration().reaching }
        try ConfigurationCheck.expect("serve", path: config)
        guard let control = try ExchangeControlConfiguration.read(path: config) else {
            throw CommandFailure(
                .configuration, "\(config) has no section control, so an exchange of this configuration listens nowhere"
            )
        }
        return control.reaching
    }
}

extension ControlHTTPClient {
    /// Prints all entries of a list, page by page.
    fileprivate func printList<Entry: ExchangeListEntry & Codable & Hashable & Sendable>(
        _ path: String, json: Bool, _ line: (Entry) -> String
    ) async throws {
        var after = ""
        while true {
            let answer = try await ask("GET", "/v1/\(path)\(after)")
            let page: ExchangeWire.Page<Entry> = try Self.value(of: answer, json: json)
            for entry in page.entries {
                Terminal.print(json ? Self.text(ControlCoding.line(entry)) : line(entry))
            }
            guard let next = page.next else { return }
            after = "?after=\(Self.escaped(next))"
        }
    }

    /// Has something done, and prints how much it was.
    fileprivate func act(
        _ path: String, _ members: [String: String] = [:], json: Bool, _ line: (Int) -> String
    ) async throws {
        let answer = try await ask("POST", "/v1/\(path)", body: members.isEmpty ? [] : ControlCoding.line(members))
        let done: ExchangeWire.Done = try Self.value(of: answer, json: json)
        Terminal.print(json ? Self.text(answer.body) : line(done.ended))
    }

    /// What a request was answered; a failure is printed as JSON, too, if that is wanted.
    static func value<Value: Decodable>(of answer: Answer, json: Bool) throws -> Value {
        do throws(ControlFault) {
            return try answer.value(Value.self)
        } catch {
            if json { Terminal.print(text(answer.body)) }
            throw CommandFailure(.failed, error.message)
        }
    }

    /// A name as part of a path or of a query.
    fileprivate static func escaped(_ name: String) -> String {
        PercentEscape.escaped(name) { byte in
            let letter = byte | 0x20
            return (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(letter)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "-._~".utf8.contains(byte)
        }
    }

    /// A line without its line break.
    fileprivate static func text(_ line: [UInt8]) -> String {
        String(decoding: line.last == UInt8(ascii: "\n") ? line.dropLast() : line[...], as: UTF8.self)
    }
}

extension ExchangeCommand {
    /// `handset exchange users`: who has an account, and which devices are connected.
    struct Users: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "users", abstract: "List the users of a running exchange, with their devices.")

        @OptionGroup var place: ExchangePlace

        @Flag(help: "Print a JSON object on each line.")
        var json = false

        func run() async throws {
            try await place.client().printList("users", json: json) { (user: ExchangeWire.User) in
                let devices = user.devices.map { device in
                    let state =
                        !device.connected
                        ? "connection lost"
                        : device.stream ? "stream" : device.registered ? "connected" : "connected, takes no invites"
                    return "\(device.device) (\(state))"
                }
                return "\(user.user): \(devices.isEmpty ? "no device" : devices.joined(separator: ", "))"
            }
        }
    }

    /// `handset exchange invites`: what rings.
    struct Invites: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "invites", abstract: "List the open invites of a running exchange.")

        @OptionGroup var place: ExchangePlace

        @Flag(help: "Print a JSON object on each line.")
        var json = false

        func run() async throws {
            try await place.client().printList("invites", json: json) { (invite: ExchangeWire.Invite) in
                let group = invite.group.map { " in group \($0)" } ?? ""
                let end = invite.remaining.map { ", \(Self.seconds($0)) left" } ?? ""
                return "\(invite.invite) \(invite.from) → \(invite.pending.joined(separator: ", "))\(group): "
                    + "for \(Self.seconds(invite.age))\(end)"
            }
        }

        private static func seconds(_ milliseconds: Int) -> String { "\(milliseconds / 1_000) s" }
    }

    /// `handset exchange calls`: what runs.
    struct Calls: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "calls", abstract: "List the running calls of a running exchange.",
            discussion: "`handset calls` prints the records of calls that have ended.")

        @OptionGroup var place: ExchangePlace

        @Flag(help: "Print a JSON object on each line.")
        var json = false

        func run() async throws {
            try await place.client().printList("calls", json: json) { (call: ExchangeWire.Call) in
                "\(call.invite) \(call.from) (\(call.fromDevice)) → \(call.with) (\(call.withDevice)): "
                    + "for \(call.duration / 1_000) s"
            }
        }
    }

    /// `handset exchange rooms`: who is in which room.
    struct Rooms: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rooms", abstract: "List the rooms of a running exchange, and who is in them.")

        @OptionGroup var place: ExchangePlace

        @Flag(help: "Print a JSON object on each line.")
        var json = false

        func run() async throws {
            try await place.client().printList("rooms", json: json) { (room: ExchangeWire.Room) in
                "\(room.room): \(room.members.map { "\($0.user) (\($0.device))" }.joined(separator: ", "))"
            }
        }
    }

    /// `handset exchange groups`: who is in which group.
    struct Groups: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "groups", abstract: "List the groups of a running exchange, and their members.")

        @OptionGroup var place: ExchangePlace

        @Flag(help: "Print a JSON object on each line.")
        var json = false

        func run() async throws {
            try await place.client().printList("groups", json: json) { (group: ExchangeWire.Group) in
                let name = group.name.map { " (\($0))" } ?? ""
                return "\(group.group)\(name), of \(group.owner): \(group.members.joined(separator: ", "))"
            }
        }
    }

    /// `handset exchange logout`: ends a user's sessions.
    struct Logout: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "logout", abstract: "Log a user out of a running exchange.",
            discussion: """
                All logins of the user end, with the sessions and calls of its devices. A device that has a password or a key \
                may log in again: `handset user remove` takes the account away.
                """)

        @OptionGroup var place: ExchangePlace

        @Option(help: "End only the session of this device; its login remains.")
        var device: String?

        @Flag(help: "Print the exchange's answer, a JSON object.")
        var json = false

        @Argument(help: "The user, by the user's own id.")
        var user: String

        func run() async throws {
            let members = device.map { ["device": $0] } ?? [:]
            try await place.client().act("users/\(ControlHTTPClient.escaped(user))/logout", members, json: json) {
                count in
                "\(user): \(count) \(count == 1 ? "session has" : "sessions have") ended."
            }
        }
    }

    /// `handset exchange cancel`: ends an invite.
    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "cancel", abstract: "End an open invite of a running exchange.",
            discussion: "To the caller and the callees it is as if the invite had timed out.")

        @OptionGroup var place: ExchangePlace

        @Flag(help: "Print the exchange's answer, a JSON object.")
        var json = false

        @Argument(help: "The invite's id, as `handset exchange invites` prints it.")
        var invite: String

        func run() async throws {
            try await place.client().act("invites/\(ControlHTTPClient.escaped(invite))/cancel", json: json) { count in
                "The invite has ended for \(count) \(count == 1 ? "user" : "users")."
            }
        }
    }

    /// `handset exchange hangup`: ends a call.
    struct HangUp: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "hangup", abstract: "End a running call of a running exchange.",
            discussion: "To each side it is as if the other one had disconnected. Its record has the reason `operator`."
        )

        @OptionGroup var place: ExchangePlace

        @Option(help: "Who accepted, if several users did.")
        var with: String?

        @Flag(help: "Print the exchange's answer, a JSON object.")
        var json = false

        @Argument(help: "The id of the call's invite, as `handset exchange calls` prints it.")
        var invite: String

        func run() async throws {
            let members = with.map { ["with": $0] } ?? [:]
            try await place.client().act("calls/\(ControlHTTPClient.escaped(invite))/hangup", members, json: json) {
                _ in
                "The call has ended."
            }
        }
    }

    /// `handset exchange events`: what happens.
    struct Events: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "events", abstract: "Print what happens in a running exchange, until it ends.")

        @OptionGroup var place: ExchangePlace

        @Option(help: "Begin after this cursor, or with `oldest`; without it now.")
        var after: String?

        @Flag(help: "Print a JSON object on each line, with the event's cursor.")
        var json = false

        func run() async throws {
            let client = try place.client()
            let target = "/v1/events" + (after.map { "?after=\(ControlHTTPClient.escaped($0))" } ?? "")
            let json = json
            let task = Task {
                try await client.receive(target) { Terminal.print(json ? Self.object($0) : Self.line($0)) }
            }
            Shutdown.onFirstSignal { task.cancel() }
            let failure: ControlHTTPClient.Answer?
            do {
                failure = try await task.value
            } catch {
                if task.isCancelled { return }
                throw error
            }
            guard let failure else { return }
            let _: ExchangeWire.Done = try ControlHTTPClient.value(of: failure, json: json)
        }

        private static func object(_ event: ControlHTTPClient.Event) -> String {
            guard let cursor = event.cursor, event.json.hasPrefix("{"), event.json != "{}" else { return event.json }
            return "{\"cursor\":\(JSONText.quoted(cursor)),\(event.json.dropFirst())"
        }

        private static func line(_ event: ControlHTTPClient.Event) -> String {
            guard let shown = ControlCoding.decode(Shown.self, from: Array(event.json.utf8)) else { return event.name }
            return shown.line(event.name)
        }

        /// What people see of an event.
        private struct Shown: Decodable {
            let user: String?
            let device: String?
            let invite: String?
            let from: String?
            let to: [String]?
            let users: [String]?
            let reason: String?
            let milliseconds: Int64?

            private enum CodingKeys: String, CodingKey {
                case user, device, invite, from, to, users, reason
                case milliseconds = "at_ms"
            }

            func line(_ name: String) -> String {
                let time = milliseconds.map { WallClock(unixMilliseconds: $0).rfc3339 + " " } ?? ""
                let party = user.map { " \($0)" + (device.map { " (\($0))" } ?? "") } ?? ""
                let parties = users.map { " " + $0.joined(separator: ", ") } ?? ""
                let course = from.map { " \($0) → \((to ?? []).joined(separator: ", "))" } ?? ""
                let which = invite.map { " \($0)" } ?? ""
                let why = reason.map { ": \($0)" } ?? ""
                return time + name.replacing("_", with: " ") + which + (course.isEmpty ? party : course) + parties + why
            }
        }
    }
}
