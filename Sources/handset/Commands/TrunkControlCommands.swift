internal import ArgumentParser
internal import ControlPlane
internal import ControlWire
internal import Core

extension TrunkCommand {
    /// `handset trunk status`: whether it carries calls, and what it has counted.
    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "status",
            abstract: "Print the state of a running trunk: accounts, calls, limits, refused calls.")

        @OptionGroup var place: ProcessPlace<TrunkProcess>

        @Flag(help: "Print the trunk's answer, a JSON object.")
        var json = false

        func run() async throws {
            try await place.client().printAnswer("GET", "status", as: TrunkWire.Status.self, json: json, Self.text)
        }

        private static func text(_ status: TrunkWire.Status) -> String {
            let accounts = status.accounts.map { account in
                let user = account.user.map { " as \(ControlText.printable($0))" } ?? ""
                return "\(account.side): \(account.connection)\(user) at \(account.server)"
            }
            let refused = status.counters.filter { $0.key.hasPrefix("refused_") && $0.value > 0 }
                .sorted { $0.key < $1.key }
                .map { "\($0.value) \($0.key.dropFirst("refused_".count).replacing("_", with: " "))" }
            let counted = status.counters
            let lines =
                accounts + [
                    "calls: \(status.callCount) of \(status.mostCalls)"
                        + (status.draining ? ", takes no new ones" : ""),
                    "since the start: \(counted["calls"] ?? 0) carried, \(counted["answered"] ?? 0) answered, refused: "
                        + (refused.isEmpty ? "none" : refused.joined(separator: ", ")),
                ]
            return (lines + status.obstacles.map { "! \($0)" }).joined(separator: "\n")
        }
    }

    /// `handset trunk calls`: what it carries.
    struct Calls: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "calls", abstract: "List the calls that a running trunk carries.")

        @OptionGroup var place: ProcessPlace<TrunkProcess>

        @Flag(help: "Print a JSON object on each line.")
        var json = false

        func run() async throws {
            try await place.client().printList("calls", as: TrunkWire.Calls.self, json: json) { call in
                let name = call.name.map { " (\(ControlText.printable($0)))" } ?? ""
                let talk = call.talk.map { ", \($0 / 1_000) s of talk" } ?? ""
                return "\(call.call) from \(call.side) \(ControlText.printable(call.from))\(name) → "
                    + "\(ControlText.printable(call.dialled)) (\(ControlText.printable(call.to))): \(call.state.rawValue), "
                    + "for \(call.age / 1_000) s\(talk)"
            }
        }
    }

    /// `handset trunk hangup`: ends a call.
    struct HangUp: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "hangup", abstract: "End a call of a running trunk, on both sides.")

        @OptionGroup var place: ProcessPlace<TrunkProcess>

        @Flag(help: "Print the trunk's answer, a JSON object.")
        var json = false

        @Argument(help: "The call's number, as `handset trunk calls` prints it.")
        var call: UInt64

        func run() async throws {
            try await place.client().printAnswer(
                "POST", "calls/\(call)/hangup", as: TrunkWire.Done.self, json: json
            ) { "Call \($0.call) is being ended." }
        }
    }

    /// `handset trunk drain`: no new calls.
    struct Drain: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "drain", abstract: "Have a running trunk refuse new calls as busy; existing calls continue.")

        @OptionGroup var place: ProcessPlace<TrunkProcess>

        @Flag(help: "Print a JSON object.")
        var json = false

        func run() async throws {
            try await place.client().act("drain", json: json, "New calls are refused as busy, until undrain.")
        }
    }

    /// `handset trunk undrain`: new calls again.
    struct Undrain: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "undrain", abstract: "Have a running trunk take new calls again.")

        @OptionGroup var place: ProcessPlace<TrunkProcess>

        @Flag(help: "Print a JSON object.")
        var json = false

        func run() async throws { try await place.client().act("undrain", json: json, "New calls are taken again.") }
    }

    /// `handset trunk events`: what happens.
    struct Events: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "events", abstract: "Print what happens in a running trunk, until it ends.")

        @OptionGroup var place: ProcessPlace<TrunkProcess>

        @Option(help: "Begin after this cursor, or with `oldest`; without it now.")
        var after: String?

        @Flag(help: "Print a JSON object on each line, with the event's cursor.")
        var json = false

        func run() async throws { try await place.client().printEvents(after: after, json: json, Self.line) }

        private static func line(_ event: ControlHTTPClient.Event) -> String {
            let json = Array(event.json.utf8)
            guard let shown = ControlCoding.decode(TrunkHappening.self, from: json) else { return event.name }
            let time = ControlCoding.decode(Timed.self, from: json).map {
                WallClock(unixMilliseconds: $0.milliseconds).rfc3339 + " "
            }
            let call = shown.call.map { " \($0)" } ?? ""
            let side = shown.side.map { " \($0)" } ?? ""
            let course = shown.from.map { from in
                " \(ControlText.printable(from)) → \(ControlText.printable(shown.dialled ?? "nothing"))"
                    + (shown.to.map { " (\(ControlText.printable($0)))" } ?? "")
            }
            let why = [shown.state, shown.reason, shown.endedBy.map { "by \($0)" }, shown.draining.map { "\($0)" }]
                .compactMap { $0 }
            return (time ?? "") + event.name.replacing("_", with: " ") + call + side + (course ?? "")
                + (why.isEmpty ? "" : ": \(why.joined(separator: " "))")
        }

        private struct Timed: Decodable {
            let milliseconds: Int64

            private enum CodingKeys: String, CodingKey { case milliseconds = "at_ms" }
        }
    }
}
