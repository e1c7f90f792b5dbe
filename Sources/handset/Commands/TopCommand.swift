internal import ArgumentParser
internal import ControlWire
internal import Core
internal import DeviceControl
internal import Glibc
internal import Realtime

/// `handset top`: the calls and accounts of a device that runs, on one screen.
struct TopCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top", abstract: "Show the calls and accounts of a running device on one screen.",
        discussion: """
            The screen is renewed each second; q ends it. LOSS % and CONC % are the packets that were lost and the sound that was \
            concealed in the last second, DELAY is that of the jitter buffer, RTT the round trip and JITTER that of the network, all \
            in ms, and SENT and RECV are levels in dBFS. Calls with more than 3 % are red. Without a terminal, or with --once, it \
            prints the state once. It finds the device as `handset control` does. docs/console.md says more.
            """)

    @OptionGroup var place: ProcessPlace<DeviceProcess>

    @Option(help: "The account, of a device with several; without it all.", completion: Completions.accounts)
    var account: String?

    @Flag(help: "Print the state once, without a screen.")
    var once = false

    func validate() throws {
        if let account, !(1...ControlLimits.accountBytes).contains(account.utf8.count) {
            throw ValidationError("--account has the name of an account, of up to \(ControlLimits.accountBytes) bytes.")
        }
    }

    func run() async throws {
        let client = DeviceClient(try place.client())
        var view = TopView(style: .standardOutput)
        view.take(try await status(client))
        guard !once, let screen = TerminalScreen() else {
            for line in view.lines(nil) { Terminal.print(line) }
            return
        }
        defer { screen.end() }
        Shutdown.onFirstSignal {
            screen.end()
            _exit(ExitStatus.ok.rawValue)
        }
        while try shows(&view, on: screen) { view.take(try await status(client)) }
    }

    private func status(_ client: DeviceClient) async throws -> ControlStatus {
        let (reply, _) = try await client.ask(ControlRequest(.status, account: account))
        if let fault = reply.error { throw CommandFailure(.failed, fault.message) }
        guard let status = reply.status else { throw CommandFailure(.failed, "the device reports no state") }
        return status
    }

    /// Shows the screen for a second, and again whenever the terminal has another size.
    ///
    /// - Returns: Whether it is to be renewed; false if the user has ended it.
    private func shows(_ view: inout TopView, on screen: TerminalScreen) throws -> Bool {
        let end = MonotonicClock.now.advanced(by: .seconds(1))
        var shown: TopView.Size?
        while MonotonicClock.now < end {
            let size = Terminal.size.map { TopView.Size(columns: $0.columns, rows: $0.rows) }
            if size != shown { screen.show(view.lines(size)) }
            shown = size
            switch screen.key(within: 100) {
            case UInt8(ascii: "q"), UInt8(ascii: "Q"), 0: return false
            default: break
            }
        }
        return true
    }
}
