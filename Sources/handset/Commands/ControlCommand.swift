internal import ArgumentParser
internal import CallAgent
internal import ControlWire
internal import DeviceControl
internal import Glibc
internal import FoundationEssentials

/// `handset control`: acts on a device that runs.
struct ControlCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "control", abstract: "Control a running device: mute, volume, answer, hang up, call, watch.",
        discussion: """
            REQUEST is one of: \(ControlWords.forms.joined(separator: ", ")).

            The device listens if its configuration has `control: socket:`. Without --socket and --config the command \
            tries the path of `socket: default`, and then those of the package's units, if only one runs. A CALL is \
            a number that status lists; without it the only call that fits. docs/control.md says more.
            """)

    @Option(help: "The device's control socket.", completion: .file())
    var socket: String?

    @Option(help: "The device's configuration file, which names the socket.", completion: .file())
    var config: String?

    @Option(
        help: "The account, of a device with several; without it the only one, or the call's.",
        completion: Completions.accounts)
    var account: String?

    @Flag(help: "Print the device's answers, a JSON object on each line.")
    var json = false

    // Volumes below 0 look like options.
    @Argument(
        parsing: .allUnrecognized, help: ArgumentHelp("The request and its arguments.", valueName: "request"),
        completion: Completions.controlWords)
    var words: [String] = []

    func validate() throws {
        if socket != nil, config != nil { throw ValidationError("--socket and --config exclude each other.") }
        if let account, !(1...ControlLimits.accountBytes).contains(account.utf8.count) {
            throw ValidationError("--account has the name of an account, of up to \(ControlLimits.accountBytes) bytes.")
        }
        do throws(ControlWords) {
            _ = try ControlWords.request(words)
        } catch {
            throw ValidationError(error.description)
        }
    }

    func run() throws {
        var request = try ControlWords.request(words)
        request.account = account
        let client = try ControlClient(path: try ControlPlace(socket: socket, config: config).path())
        if case .watch = request.action { Shutdown.onFirstSignal { client.stop() } }
        let (reply, line) = try client.ask(request)
        if let fault = reply.error {
            if json { Terminal.print(line) }
            throw CommandFailure(.failed, fault.message)
        }
        switch request.action {
        case .status: Terminal.print(json ? line : reply.status.map(ControlText.status) ?? line)
        case .watch: try watch(client, reply, line)
        default: Terminal.print(json ? line : ControlText.done(request, reply))
        }
    }

    /// Prints what happens until the device goes, or a signal comes: that is the way to end it, so it ends well.
    private func watch(_ client: ControlClient, _ reply: ControlReply, _ line: String) throws {
        if json {
            Terminal.print(line)
            while let (_, line) = try client.nextEvent() { Terminal.print(line) }
            return
        }
        if let status = reply.status { Terminal.print(ControlText.status(status)) }
        var view = ControlView(width: Terminal.size?.columns, status: reply.status)
        while let (event, line) = try client.nextEvent() {
            Terminal.writeResult(view.take(event, of: ControlCoding.account(inEvent: line)))
        }
        Terminal.writeResult(view.end())
    }
}

/// Which device a command is for, as its options say.
struct ControlPlace {
    /// `--socket`.
    let socket: String?
    /// `--config`.
    let config: String?

    /// The path of the device's control socket.
    func path() throws -> String {
        if let socket { return socket }
        guard let config else { return try UnitSockets().choose(usual: ControlSocketPath.reaching(nil)) }
        try ConfigurationCheck.expect("run", path: config)
        guard let control = try ControlConfiguration.read(path: config) else {
            throw CommandFailure(
                .configuration, "\(config) has no control.socket, so a device of this configuration listens nowhere")
        }
        return ControlSocketPath.reaching(control)
    }
}

/// The control sockets of the package's units, each in a folder with the name of its device.
struct UnitSockets {
    /// Their paths, in the order of their names.
    let paths: [String]

    /// Looks for them in the folder that systemd makes for the units.
    init(in folder: String = "/run/handset") {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        paths = names.sorted().map { "\(folder)/\($0)/control.sock" }
            .filter { FileManager.default.fileExists(atPath: $0) }
    }

    /// The socket when the user names none: the usual one, if it is there, or that of the only unit.
    ///
    /// - Throws: If there are several.
    func choose(usual: String) throws(CommandFailure) -> String {
        guard !FileManager.default.fileExists(atPath: usual), let first = paths.first else { return usual }
        guard paths.count == 1 else {
            throw CommandFailure(
                .usage, "\(paths.count) devices run here; name one: --socket \(paths.joined(separator: ", --socket "))")
        }
        return first
    }
}
