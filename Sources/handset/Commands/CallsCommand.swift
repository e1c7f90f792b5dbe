internal import ExchangeServer
internal import ArgumentParser
internal import ExchangeCore
internal import SignalWire
internal import Core

/// `handset calls`: the records that an exchange keeps.
struct CallsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "calls", abstract: "Print the call records of an exchange, newest first.",
        discussion: """
            One line for each invitee of each invite: when it was sent, its caller and callee, how it ended, and for how many \
            seconds media flowed. The exchange may be running.
            """)

    @OptionGroup var state: StatePlace

    @Option(help: "Only the calls of this user, by the user's own id.", transform: UserID.argument)
    var user: UserID?

    @Option(help: "Print at most this many.")
    var limit = 1_000

    @Flag(help: "Print a JSON object on each line.")
    var json = false

    func validate() throws {
        guard limit > 0 else { throw ValidationError("--limit must be at least 1.") }
    }

    func run() throws {
        for record in try CallDetailRecord.read(from: try state.resolve(), user: user, limit: limit) {
            Terminal.print(json ? Self.object(record) : Self.line(record))
        }
    }

    private static func line(_ record: CallDetailRecord) -> String {
        let state = record.reason ?? (record.answeredAt == nil ? "ringing" : "standing")
        let duration = record.durationMilliseconds.map { " \(Double($0) / 1_000) s" } ?? ""
        return "\(record.sentAt.rfc3339) \(record.inviter) → \(record.invitee): \(state)\(duration)"
    }

    private static func object(_ record: CallDetailRecord) -> String {
        var object = JSONObjectText()
        object.add("invite", record.invite.text)
        object.add("inviter", record.inviter.text)
        object.add("inviter_device", record.inviterDevice.text)
        object.add("invitee", record.invitee.text)
        object.add("invitee_device", record.inviteeDevice?.text)
        object.add("group", record.group?.text)
        object.add("sent", record.sentAt.rfc3339)
        object.add("answered", record.answeredAt?.rfc3339)
        object.add("ended", record.endedAt?.rfc3339)
        object.add("reason", record.reason)
        object.add("duration_ms", record.durationMilliseconds.map(Double.init))
        return object.text
    }
}
