internal import ExchangeServer
internal import ArgumentParser
internal import ExchangeCore
internal import SignalWire
internal import Core

/// `handset push`: pushes that an exchange made, or could not make.
struct PushCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push", abstract: "Look at the pushes of an exchange.", subcommands: [Dead.self])

    /// `handset push dead`: those that could not be made.
    struct Dead: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "dead", abstract: "Print the pushes that failed, newest first.",
            discussion: """
                One line for each: when it was given up, for which device and kind of push token, its message, \
                the reason, and the last answer of the webhook. Tokens are not printed. The \
                exchange may be running.
                """)

        @OptionGroup var state: StatePlace

        @Option(help: "Only those for this user's devices, by the user's own id.", transform: UserID.argument)
        var user: UserID?

        @Option(help: "Print at most this many.")
        var limit = 1_000

        @Flag(help: "Print a JSON object on each line.")
        var json = false

        func validate() throws {
            guard limit > 0 else { throw ValidationError("--limit must be at least 1.") }
        }

        func run() throws {
            for record in try DeadPush.read(from: try state.resolve(), user: user, limit: limit) {
                Terminal.print(json ? Self.object(record) : Self.line(record))
            }
        }

        private static func line(_ record: DeadPush.Record) -> String {
            let push = record.push
            let answer = push.detail.map { " (\($0))" } ?? ""
            let attempts = push.attempts == 1 ? "1 attempt" : "\(push.attempts) attempts"
            return "\(record.at.rfc3339) \(push.user)/\(push.device) \(push.kind) \(push.message) of \(push.invite): "
                + "\(push.reason.rawValue)\(answer) after \(attempts)"
        }

        private static func object(_ record: DeadPush.Record) -> String {
            let push = record.push
            var object = JSONObjectText()
            object.add("id", push.id.text)
            object.add("at", record.at.rfc3339)
            object.add("invite", push.invite.text)
            object.add("user", push.user.text)
            object.add("device", push.device.text)
            object.add("kind", push.kind.text)
            object.add("message", push.message)
            object.add("reason", push.reason.rawValue)
            object.add("answer", push.detail)
            object.add("attempts", Double(push.attempts))
            return object.text
        }
    }
}
