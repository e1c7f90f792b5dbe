internal import ArgumentParser
internal import CallAgent
internal import ConfigReader
internal import ControlWire
internal import Logging

/// `handset mcp`: an agent's way to a device that runs.
struct MCPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mcp", abstract: "Let an agent make calls with a running device (Model Context Protocol).",
        discussion: """
            A program that agents run speaks the Model Context Protocol with this command, on standard input and output. The tools \
            place and answer calls, say texts and hear what the other side says, press keys, transfer, hang up, wait for events and \
            explain what went wrong. The device is another process, `handset run`, whose configuration has `control: socket:`. \
            docs/mcp.md says more.
            """)

    @Option(
        help: "The device's configuration file, which names the socket, the voice and the recogniser.",
        completion: .file())
    var config: String?

    @Option(
        help: "The device's control socket, in place of --config: without voice, recogniser, records and callees.",
        completion: .file())
    var socket: String?

    @Flag(help: "Offer only the tools that change nothing: list_calls and explain_call.")
    var readOnly = false

    @OptionGroup var log: LogOptions

    func validate() throws {
        if socket != nil, config != nil { throw ValidationError("--socket and --config exclude each other.") }
    }

    func run() async throws {
        log.bootstrap()
        let logger = Logger(label: "handset.mcp")
        let configuration =
            try config.map { path throws in
                try ConfigurationCheck.expect("run", path: path)
                return try MCPConfiguration.read(path: path)
            } ?? MCPConfiguration()
        let callees = configuration.callees
        let door = MCPDoor(version: HandsetVersion.current, isReadOnly: readOnly) {
            callees.admits($0, account: $1)
        }
        let driver = MCPDriver(
            door, path: try socket.map(DeviceProcess.socket(named:)) ?? DeviceProcess.socket(ofConfiguration: config),
            sound: MCPSound(configuration), logger: logger
        ) { [config] search, account in
            try await ExplainCommand.explanation(of: search, config: config, account: account)
        }
        Shutdown.onFirstSignal { Task { await driver.take(.inputEnded) } }
        await driver.run()
    }
}
