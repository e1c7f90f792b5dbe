internal import ArgumentParser

/// `handset conference`: the rooms of a device that runs.
struct ConferenceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "conference",
        abstract: "Show and record the rooms of a running device, and mute or remove members.",
        discussion: """
            REQUEST is one of: list, mute CALL, unmute CALL, remove CALL, record CALL start [FILE], record CALL stop. It is the \
            same as `handset control conference …`, and finds the device in the same ways. docs/conference.md says more.
            """)

    @Option(help: "The device's control socket.", completion: .file())
    var socket: String?

    @Option(help: "The device's configuration file, which names the socket.", completion: .file())
    var config: String?

    @Flag(help: "Print the device's answer, a JSON object on one line.")
    var json = false

    @Argument(help: ArgumentHelp("The request and its call.", valueName: "request"))
    var words: [String]

    func validate() throws { _ = try control() }

    func run() throws { try control().run() }

    private func control() throws -> ControlCommand {
        var arguments = ["conference"] + words
        if let socket { arguments += ["--socket", socket] }
        if let config { arguments += ["--config", config] }
        if json { arguments.append("--json") }
        return try ControlCommand.parse(arguments)
    }
}
