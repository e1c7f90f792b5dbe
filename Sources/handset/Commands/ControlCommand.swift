internal import ArgumentParser
internal import CallAgent
internal import ControlPlane
internal import ControlWire
internal import DeviceControl
internal import Glibc
internal import FoundationEssentials

/// `handset control`: acts on a device that runs.
struct ControlCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "control", abstract: "Control a running device: mute, volume, answer, hang up, call, watch.",
        discussion: """
            REQUEST is one of: \(ControlWords.forms.joined(separator: ", ")).

            The device listens if its configuration has `control: socket:`. Without --socket and --config the command \
            tries the path of `socket: default`, and then those of the package's units, if only one runs. A CALL is \
            a number that status lists; without it the only call that fits. docs/control.md says more.
            """)

    @OptionGroup var place: ProcessPlace<DeviceProcess>

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
        if let account, !(1...ControlLimits.accountBytes).contains(account.utf8.count) {
            throw ValidationError("--account has the name of an account, of up to \(ControlLimits.accountBytes) bytes.")
        }
        do throws(ControlWords) {
            _ = try ControlWords.request(words)
        } catch {
            throw ValidationError(error.description)
        }
    }

    func run() async throws {
        var request = try ControlWords.request(words)
        request.account = account
        let client = DeviceClient(try place.client())
        if case .watch(let levels) = request.action { return try await watch(client, levels: levels) }
        let (reply, line) = try await client.ask(request)
        if let fault = reply.error {
            if json { Terminal.print(line) }
            throw CommandFailure(.failed, fault.message)
        }
        if json { return Terminal.print(line) }
        if case .status = request.action {
            Terminal.print(reply.status.map(ControlText.status) ?? line)
        } else {
            Terminal.print(ControlText.done(request, reply))
        }
    }

    /// Prints what happens until the device goes, or a signal comes: that is the way to end it, so it ends well.
    private func watch(_ client: DeviceClient, levels: Bool) async throws {
        let (reply, line) = try await client.ask(ControlRequest(.status, account: account))
        if json { Terminal.print(line) }
        if let fault = reply.error { throw CommandFailure(.failed, fault.message) }
        if !json, let status = reply.status { Terminal.print(ControlText.status(status)) }
        let (json, account) = (json, account)
        let task = Task {
            var view = ControlView(width: json ? nil : Terminal.size?.columns, status: reply.status)
            defer { if !json { Terminal.writeResult(view.end()) } }
            try await client.receive(after: line, account: account, levels: levels) { event in
                if json { return Terminal.print(event.json) }
                let bytes = Array(event.json.utf8)
                guard let known = ControlCoding.decode(ControlEvent.self, from: bytes) else { return }
                Terminal.writeResult(view.take(known, of: ControlCoding.account(inEvent: event.json)))
            }
        }
        Shutdown.onFirstSignal { task.cancel() }
        do {
            try await task.value
        } catch let fault as ControlFault {
            throw CommandFailure(.failed, fault.message)
        } catch {
            guard task.isCancelled else { throw error }
        }
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
