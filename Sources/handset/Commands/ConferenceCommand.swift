internal import ArgumentParser

/// `handset conference`: the rooms of a device that runs.
struct ConferenceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "conference",
        abstract: "Show and record the rooms of a running device, and mute or remove members.",
        discussion: """
            REQUEST is one of: list, mute CALL, unmute CALL, remove CALL, record CALL start [FILE], record CALL stop. It is the \
            same as `handset control conference …`, and finds the device in the same ways. docs/conference.md says more.
            """)

    @OptionGroup var place: ProcessPlace<DeviceProcess>

    @Flag(help: "Print the device's answer, a JSON object on one line.")
    var json = false

    @Argument(help: ArgumentHelp("The request and its call.", valueName: "request"))
    var words: [String]

    func validate() throws { _ = try control() }

    func run() async throws { try await control().run() }

    private func control() throws -> ControlCommand {
        var arguments = ["conference"] + words
        arguments += place.arguments
        if json { arguments.append("--json") }
        return try ControlCommand.parse(arguments)
    }
}
