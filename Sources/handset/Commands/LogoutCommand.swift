internal import ArgumentParser
internal import CallAgent
internal import CallControl
internal import Logging
internal import SignalingClient

/// `handset logout`: ends the login that a device keeps.
struct LogoutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logout", abstract: "End the login that a device keeps, and forget it.",
        discussion: """
            Ends the login in the configuration's session_file at the service, with its sessions and calls, \
            and removes the file. Pushes continue until the device is unregistered, as by --unregister. Other secrets \
            of the configuration stay valid: a device that has some logs in again when it starts.
            """)

    @Option(help: "The device's configuration file.", completion: .file())
    var config: String

    @Option(help: "Which account of the configuration file, if it has several.", completion: Completions.accounts)
    var account: String?

    @Option(
        help: "Base URL of the signaling server, instead of the configuration's.",
        transform: ServerURL.argument)
    var server: String?

    @Flag(help: "Also unregister the device, so that it gets no more pushes.")
    var unregister = false

    @Flag(help: "Print the result as one JSON object.")
    var json = false

    @OptionGroup var logs: LogOptions

    func run() async throws {
        logs.bootstrap()
        try ConfigurationCheck.expect("run", path: config)
        var configuration = try DeviceConfiguration.read(path: config, server: server, account: account)
        guard let path = configuration.account.sessionFile else {
            throw CommandFailure(
                .configuration, "cannot log out: \(config) has no account.session_file, so no login is kept")
        }
        configuration.account.credential = .kept
        var settings = try HandsetServiceConfiguration(
            configuration, program: DeviceProgram(version: HandsetVersion.current))
        settings.loginPatience = .zero
        settings.connection.firstAttempts = 1
        guard case .login? = try settings.sessionStore?.look() else {
            throw CommandFailure(
                .failed, "cannot log out: no login of this application and server is kept in \"\(path)\"")
        }
        let service = try HandsetService(settings, logger: Logger(label: "handset"))
        if unregister {
            try await service.connect()
            try await service.unregister()
        }
        do throws(SignalingError) {
            try await service.logOut()
        } catch {
            let status = ExitStatus(error)
            // One that the exchange refuses is no login any more.
            guard [.serverUnreachable, .certificateNotTrusted].contains(status) else { throw error }
            throw CommandFailure(
                status,
                "\(error) \(path) is removed, but the login stays valid at the exchange until it expires; "
                    + "`handset user revoke` there ends it")
        }
        var result = JSONObjectText()
        result.add("server", configuration.account.authURL)
        result.add("removed", path)
        result.add("unregistered", unregister)
        Terminal.print(json ? result.text : "logged out; \(path) is removed")
    }
}
