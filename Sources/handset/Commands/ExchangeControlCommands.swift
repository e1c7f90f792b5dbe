internal import ArgumentParser
internal import ControlPlane
internal import ControlWire
internal import Core

extension ExchangeCommand {
    /// `handset exchange users`: who has an account, and which devices are connected.
    struct Users: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "users", abstract: "List the users of a running exchange, with their devices.")

        @OptionGroup var place: ProcessPlace<ExchangeProcess>

        @Flag(help: "Print a JSON object on each line.")
        var json = false

        func run() async throws {
            try await place.client().printList("users", as: ExchangeWire.Page<ExchangeWire.User>.self, json: json) {
                user in
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

        @OptionGroup var place: ProcessPlace<ExchangeProcess>

        @Flag(help: "Print a JSON object on each line.")
        var json = false

        func run() async throws {
            try await place.client().printList("invites", as: ExchangeWire.Page<ExchangeWire.Invite>.self, json: json) {
                invite in
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

        @OptionGroup var place: ProcessPlace<ExchangeProcess>

        @Flag(help: "Print a JSON object on each line.")
        var json = false

        func run() async throws {
            try await place.client().printList("calls", as: ExchangeWire.Page<ExchangeWire.Call>.self, json: json) {
                call in
                "\(call.invite) \(call.from) (\(call.fromDevice)) → \(call.with) (\(call.withDevice)): "
                    + "for \(call.duration / 1_000) s"
            }
        }
    }

    /// `handset exchange rooms`: who is in which room.
    struct Rooms: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rooms", abstract: "List the rooms of a running exchange, and who is in them.")

        @OptionGroup var place: ProcessPlace<ExchangeProcess>

        @Flag(help: "Print a JSON object on each line.")
        var json = false

        func run() async throws {
            try await place.client().printList("rooms", as: ExchangeWire.Page<ExchangeWire.Room>.self, json: json) {
                room in
                "\(room.room): \(room.members.map { "\($0.user) (\($0.device))" }.joined(separator: ", "))"
            }
        }
    }

    /// `handset exchange groups`: who is in which group.
    struct Groups: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "groups", abstract: "List the groups of a running exchange, and their members.")

        @OptionGroup var place: ProcessPlace<ExchangeProcess>

        @Flag(help: "Print a JSON object on each line.")
        var json = false

        func run() async throws {
            try await place.client().printList("groups", as: ExchangeWire.Page<ExchangeWire.Group>.self, json: json) {
                group in
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

        @OptionGroup var place: ProcessPlace<ExchangeProcess>

        @Option(help: "End only the session of this device; its login remains.")
        var device: String?

        @Flag(help: "Print the exchange's answer, a JSON object.")
        var json = false

        @Argument(help: "The user, by the user's own id.")
        var user: String

        func run() async throws {
            let members = device.map { ["device": $0] } ?? [:]
            try await place.client().printAnswer(
                "POST", "users/\(ControlHTTPClient.escaped(user))/logout", members, as: ExchangeWire.Done.self,
                json: json
            ) { done in
                "\(user): \(done.ended) \(done.ended == 1 ? "session has" : "sessions have") ended."
            }
        }
    }

    /// `handset exchange cancel`: ends an invite.
    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "cancel", abstract: "End an open invite of a running exchange.",
            discussion: "To the caller and the callees it is as if the invite had timed out.")

        @OptionGroup var place: ProcessPlace<ExchangeProcess>

        @Flag(help: "Print the exchange's answer, a JSON object.")
        var json = false

        @Argument(help: "The invite's id, as `handset exchange invites` prints it.")
        var invite: String

        func run() async throws {
            try await place.client().printAnswer(
                "POST", "invites/\(ControlHTTPClient.escaped(invite))/cancel", as: ExchangeWire.Done.self, json: json
            ) { done in
                "The invite has ended for \(done.ended) \(done.ended == 1 ? "user" : "users")."
            }
        }
    }

    /// `handset exchange hangup`: ends a call.
    struct HangUp: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "hangup", abstract: "End a running call of a running exchange.",
            discussion: "To each side it is as if the other one had disconnected. Its record has the reason `operator`."
        )

        @OptionGroup var place: ProcessPlace<ExchangeProcess>

        @Option(help: "Who accepted, if several users did.")
        var with: String?

        @Flag(help: "Print the exchange's answer, a JSON object.")
        var json = false

        @Argument(help: "The id of the call's invite, as `handset exchange calls` prints it.")
        var invite: String

        func run() async throws {
            let members = with.map { ["with": $0] } ?? [:]
            try await place.client().printAnswer(
                "POST", "calls/\(ControlHTTPClient.escaped(invite))/hangup", members, as: ExchangeWire.Done.self,
                json: json
            ) { _ in "The call has ended." }
        }
    }

    /// `handset exchange remove`: takes a user out of a room or a group.
    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove", abstract: "Take a user out of a room or a group of a running exchange.",
            discussion: """
                All in it are notified, the user included, which stays logged in and may join again. The owner of a group stays.
                """)

        @OptionGroup var place: ProcessPlace<ExchangeProcess>

        @Option(help: "The room.")
        var room: String?

        @Option(help: "The group.")
        var group: String?

        @Option(help: "Only this connection of the user, as `handset exchange rooms --json` prints it; with --room.")
        var connection: String?

        @Flag(help: "Print the exchange's answer, a JSON object.")
        var json = false

        @Argument(help: "The user, by the user's own id.")
        var user: String

        func validate() throws {
            guard (room == nil) != (group == nil) else { throw ValidationError("Give either --room or --group.") }
            guard connection == nil || room != nil else { throw ValidationError("--connection goes with --room.") }
        }

        func run() async throws {
            var members = ["user": user]
            members["connection"] = connection
            let path =
                room.map { "rooms/\(ControlHTTPClient.escaped($0))" }
                ?? "groups/\(ControlHTTPClient.escaped(group ?? ""))"
            try await place.client().printAnswer(
                "POST", "\(path)/remove", members, as: ExchangeWire.Done.self, json: json
            ) { done in
                room == nil
                    ? "\(user) has left the group."
                    : "\(user): \(done.ended) \(done.ended == 1 ? "connection has" : "connections have") left the room."
            }
        }
    }

    /// `handset exchange move`: asks devices to connect again.
    struct Move: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "move",
            abstract: "Ask a user's devices to connect to a running exchange again, or to another one.",
            discussion: """
                Devices open the new connection first, and their calls continue. SIGUSR1 asks the devices of all users.
                """)

        @OptionGroup var place: ProcessPlace<ExchangeProcess>

        @Option(help: "Only this device.")
        var device: String?

        @Option(help: "How long the devices have, in seconds.")
        var within = 30

        @Option(help: "The address of another exchange's WebSocket, such as wss://calls.example.org/v1/rtc.")
        var to: String?

        @Flag(help: "Print the exchange's answer, a JSON object.")
        var json = false

        @Argument(help: "The user, by the user's own id.")
        var user: String

        func run() async throws {
            let body = ControlCoding.line(Body(device: device, within: within, url: to))
            try await place.client().printAnswer(
                "POST", "users/\(ControlHTTPClient.escaped(user))/move", body: body, as: ExchangeWire.Asked.self,
                json: json
            ) { answer in
                "\(user): \(answer.asked) \(answer.asked == 1 ? "device was" : "devices were") asked to move."
            }
        }

        private struct Body: Encodable {
            let device: String?
            let within: Int
            let url: String?

            private enum CodingKeys: String, CodingKey {
                case device, url
                case within = "within_s"
            }
        }
    }

    /// `handset exchange events`: what happens.
    struct Events: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "events", abstract: "Print what happens in a running exchange, until it ends.")

        @OptionGroup var place: ProcessPlace<ExchangeProcess>

        @Option(help: "Begin after this cursor, or with `oldest`; without it now.")
        var after: String?

        @Flag(help: "Print a JSON object on each line, with the event's cursor.")
        var json = false

        func run() async throws {
            try await place.client().printEvents(after: after, json: json, Self.line)
        }

        private static func line(_ event: ControlHTTPClient.Event) -> String {
            guard let shown = ControlCoding.decode(Shown.self, from: Array(event.json.utf8)) else { return event.name }
            return shown.line(event.name)
        }

        /// What people see of an event.
        private struct Shown: Decodable {
            let user: String?
            let device: String?
            let room: String?
            let group: String?
            let invite: String?
            let from: String?
            let to: [String]?
            let users: [String]?
            let reason: String?
            let milliseconds: Int64?

            private enum CodingKeys: String, CodingKey {
                case user, device, room, group, invite, from, to, users, reason
                case milliseconds = "at_ms"
            }

            func line(_ name: String) -> String {
                let time = milliseconds.map { WallClock(unixMilliseconds: $0).rfc3339 + " " } ?? ""
                let party = user.map { " \($0)" + (device.map { " (\($0))" } ?? "") } ?? ""
                let parties = users.map { " " + $0.joined(separator: ", ") } ?? ""
                let course = from.map { " \($0) → \((to ?? []).joined(separator: ", "))" } ?? ""
                let which = invite.map { " \($0)" } ?? ""
                let place = room.map { " from room \($0)" } ?? group.map { " from group \($0)" } ?? ""
                let why = reason.map { ": \($0)" } ?? ""
                let who = (course.isEmpty ? party : course) + parties
                return time + name.replacing("_", with: " ") + which + who + place + why
            }
        }
    }
}
