internal import ArgumentParser
internal import AudioDevices
internal import CallAgent
internal import ConfigReader
internal import Enrollment
internal import ExchangeCore
internal import ExchangeServer
internal import FoundationEssentials
internal import Logging
internal import Files
internal import SignalWire
internal import SignalingClient
internal import Core

/// `handset setup`: from nothing to a device that can run.
struct SetupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "setup", abstract: "Write a device's configuration, and try it.",
        discussion: """
            Writes FOLDER/NAME.yaml and the files of its secrets for `handset run` and the unit handset@NAME, checks them, tries \
            the sound card, logs in, and has the device call itself; at a SIP server it registers instead. On a terminal it asks \
            for what no option gives, secrets included. The account is made in the exchange of --exchange-config, on this \
            machine; or --token-file has the media token of one that exists; or --enroll has the code of one; or --sip names one \
            at a SIP server. If anything fails, all that was made is removed again. docs/install.md shows each.
            """)

    @Argument(help: "The device's name: of its unit, its account and its files.")
    var name: String

    @Option(
        help: """
            The exchange's base URL; unless given, that of --exchange-config, or \(SetupPlan(name: "").server).
            """, transform: ServerURL.argument)
    var server: String?

    @Option(
        help: """
            Make the account in this exchange: its configuration, which names a users_file, and says where the exchange is and \
            which authority signs its certificate.
            """, completion: .file())
    var exchangeConfig: String?

    @Option(help: "Take the account whose media token is in this file; \"-\" is standard input.", completion: .file())
    var tokenFile: String?

    @Option(help: "Take the account whose media token is in this environment variable.")
    var tokenEnv: String?

    @Option(
        help: """
            Join the exchange by this code of `handset user enroll`; "-" reads it from standard input, so that no process list \
            shows it.
            """)
    var enroll: String?

    @Option(help: "Join the exchange by the code in this environment variable.")
    var enrollEnv: String?

    @Option(help: "Take the account at a SIP server with this address, such as alice@example.org.")
    var sip: String?

    @Option(help: "The SIP server, HOST or HOST:PORT, if it is not the address's domain.")
    var sipServer: String?

    @Option(
        help: "The transport to the SIP server: udp, tcp, tls, ws, wss or auto; tls unless given.",
        completion: Completions.transports)
    var sipTransport: String?

    @Option(help: "The name for the SIP password, if it is not that of the address.")
    var sipUser: String?

    @Option(help: "The file with the SIP account's password; \"-\" is standard input.", completion: .file())
    var passwordFile: String?

    @Option(help: "The environment variable with the SIP account's password.")
    var passwordEnv: String?

    @Flag(help: "Allow plain text to another machine, which can be intercepted on the network.")
    var allowPlainText = false

    @Flag(help: "Offer and take calls without SRTP at the SIP server, which can be intercepted on the network.")
    var allowPlainRtp = false

    @Option(
        help: "Certificates to trust in addition to the system's; they are copied into the folder.", completion: .file()
    )
    var trustRoots: String?

    @Option(
        help: "What the device does in calls: card, echo, tone or silence; echo unless given.",
        completion: Completions.sources)
    var source: String?

    @Option(help: "The sound card, with --source card; see `handset devices`.", completion: Completions.cards)
    var device: String?

    @Option(
        help: "Defaults that suit the machine: pi for a small board.",
        completion: Completions.profiles)
    var profile: String?

    @OptionGroup var paths: SetupPaths

    @OptionGroup var application: SetupApplication

    @Option(
        help: """
            The unit's user and its group, which may read the files, and gets the state's folder; if there is none, only \
            their owner may.
            """)
    var group = "handset"

    @Flag(help: "Replace an existing configuration.")
    var force = false

    @Flag(help: "Only write and check.")
    var noTrial = false

    @Flag(help: "Enable and start the unit handset@NAME at the end.")
    var enable = false

    @OptionGroup var logs: LogOptions

    func validate() throws {
        if let problem = SetupPlan.problem(withName: name) { throw ValidationError(problem) }
        try expectOneAccount()
        try expectSIPOptions()
        guard (application.key == nil) == (application.secretFile == nil) else {
            throw ValidationError("--app-key and --app-secret-file go together.")
        }
        if let profile, MachineProfile(rawValue: profile) == nil {
            let all = MachineProfile.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("--profile \(profile) is none of \(all).")
        }
        if let source, SetupPlan.Source(rawValue: source) == nil {
            throw ValidationError("--source \(source) is none of \(Self.sources.joined(separator: ", ")).")
        }
    }

    private func expectOneAccount() throws {
        let given = [
            ("--exchange-config", exchangeConfig), ("--token-file", tokenFile), ("--token-env", tokenEnv),
            ("--enroll", enroll), ("--enroll-env", enrollEnv), ("--sip", sip),
        ].filter { $0.1 != nil }.map(\.0)
        if given.count > 1 { throw ValidationError("\(given[0]) and \(given[1]) exclude each other.") }
        if enroll != nil || enrollEnv != nil, server != nil || trustRoots != nil || allowPlainText {
            throw ValidationError("A code includes what --server, --trust-roots and --allow-plain-text give.")
        }
    }

    private func expectSIPOptions() throws {
        guard sip == nil else {
            if server != nil || application.key != nil {
                throw ValidationError(
                    "--server and --app-key are for an exchange; --sip-server says where a SIP server is.")
            }
            if passwordFile != nil, passwordEnv != nil {
                throw ValidationError("--password-file and --password-env exclude each other.")
            }
            if let sipTransport, !Self.transports.contains(sipTransport) {
                throw ValidationError(
                    "--sip-transport \(sipTransport) is none of \(Self.transports.joined(separator: ", ")).")
            }
            return
        }
        let idle = [
            ("--sip-server", sipServer), ("--sip-transport", sipTransport), ("--sip-user", sipUser),
            ("--password-file", passwordFile), ("--password-env", passwordEnv),
        ].first { $0.1 != nil }
        if let idle { throw ValidationError("\(idle.0) is for --sip ADDRESS.") }
        if allowPlainRtp { throw ValidationError("--allow-plain-rtp is for --sip ADDRESS.") }
    }

    private static let sources = SetupPlan.Source.allCases.map(\.rawValue)
    private static let transports = SIPTransportWord.allCases.map(\.rawValue)

    func run() async throws {
        if let enroll, enroll != "-" { Self.warnOfShownCode() }
        try await run(code: enroll.map { $0 == "-" ? UserCommand.line() : $0 } ?? enrollEnv.map(Self.variable))
    }

    static func warnOfShownCode() {
        ProgressLines().warn(
            "every user of this machine can see a code on the command line; \"-\" in its place reads it from standard input"
        )
    }

    /// - Parameter code: By which the device joins, if it is to.
    func run(code: String?) async throws {
        logs.bootstrap()
        let progress = ProgressLines()
        let exchange = try exchangeConfig.map { try SetupExchange(path: $0) }
        var plan = try plan(exchange, code)
        // A key that has not logged in yet is left from an interrupted run.
        let resumes = plan.code != nil && SetupFiles.isThere(plan.draftKeyPath)
        guard force || resumes || !SetupFiles.isThere(plan.configurationPath) else {
            throw CommandFailure(.failed, "there is a \(plan.configurationPath) already; --force replaces it")
        }
        let ending = EndRequest(moreSeconds: 10)
        var undo = SetupUndo()
        do {
            try await carryOut(&plan, exchange, ending, &undo, progress)
        } catch {
            undo.takeBack(progress)
            throw error
        }
    }

    private func carryOut(
        _ plan: inout SetupPlan, _ exchange: SetupExchange?, _ ending: EndRequest, _ undo: inout SetupUndo,
        _ progress: ProgressLines
    ) async throws {
        let copies = try copies(plan, exchange)
        plan.hasTrustRoots = copies.contains { $0.path == plan.trustRootsPath }
        let secret: [SetupFiles.File]
        if let code = plan.code {
            secret = try await join(by: code, &plan, &undo, progress)
        } else {
            secret = try [self.secret(of: plan, exchange, &undo, progress)]
        }
        let files = SetupFiles(plan: plan, group: group)
        try files.write(secret + copies + [(plan.configurationPath, plan.text)], &undo, progress)
        progress.say("Wrote \(plan.configurationPath) and \(secret[0].path)")
        if plan.code != nil { undo.keep() }  // The exchange knows the key, and the code is used up.
        // What was written, and not what is at its path: in a folder of another user that may be a file of theirs by now.
        let document = try ConfigDocument.read(text: plan.text, at: plan.configurationPath, fileChecks: .all)
        let configuration = try AccountsConfiguration.read(document).account(nil, in: document)
        for warning in configuration.warnings { progress.warn("\(warning)") }
        if !noTrial { try await tryOut(plan, configuration, ending, progress) }
        if enable, !ending.isMade { try enableUnit(&undo) }
        guard !ending.isMade else { throw SetupTrial.interruption }
        files.remove(plan.draftKeyPath)
        Terminal.print("\(plan.configurationPath): good for `handset run`")
        if !enable { progress.say("To run it now and at each start: systemctl enable --now handset@\(name)") }
    }

    private func enableUnit(_ undo: inout SetupUndo) throws {
        let unit = "handset@\(name)"
        let wasEnabled = SystemProgram.run("systemctl is-enabled --quiet \(unit) 2>/dev/null")
        let wasActive = SystemProgram.run("systemctl is-active --quiet \(unit) 2>/dev/null")
        // It is starting, or has failed and waits for its next start.
        let wasStarting =
            !wasActive && SystemProgram.run("systemctl is-active \(unit) 2>/dev/null | grep -qx activating")
        if !wasEnabled || !wasActive && !wasStarting {
            // What it was before, it stays.
            let action = wasEnabled ? "stop" : wasActive || wasStarting ? "disable" : "disable --now"
            undo.add("the unit \(unit) from those that start") {
                _ = SystemProgram.run("systemctl \(action) \(unit) 2>/dev/null")
            }
        }
        if wasActive {
            undo.addForLast("the new configuration from the unit \(unit), which runs with the earlier one") {
                guard SystemProgram.run("systemctl restart \(unit)") else {
                    throw CommandFailure(.failed, "it does not start; `systemctl status \(unit)` says why")
                }
            }
        }
        if wasStarting {
            undo.addForLast("the new configuration from the unit \(unit), which starts again with the earlier one") {
                // Without waiting: it may well fail once more.
                guard SystemProgram.run("systemctl restart --no-block \(unit)") else {
                    throw CommandFailure(.failed, "systemd does not start it; `systemctl status \(unit)` says why")
                }
            }
        }
        // A unit that runs already takes the new configuration.
        guard SystemProgram.run("systemctl enable \(unit) && systemctl restart \(unit)") else {
            throw CommandFailure(
                .failed, "the unit \(unit) cannot be enabled and started; without systemd leave --enable out")
        }
    }

    // MARK: Answers

    private func plan(_ exchange: SetupExchange?, _ code: String?) throws -> SetupPlan {
        var plan = SetupPlan(name: name)
        // The configuration is read from its own folder, and not from this one.
        plan.folder = RegularFile.absolute(paths.folder)
        if let state = paths.state { plan.state = RegularFile.absolute(state) }
        if let control = paths.control { plan.controlSocket = RegularFile.absolute(control) }
        plan.appKey = application.key
        plan.allowsPlainText = allowPlainText
        if let exchange {
            plan.server = try server ?? exchange.server()
            plan.allowsPlainText = allowPlainText || server == nil && exchange.needsPlainText
        } else {
            plan.server = server ?? plan.server
        }
        plan.source = source.flatMap { SetupPlan.Source(rawValue: $0) } ?? plan.source
        plan.device = device
        plan.profile = profile
        if let sip { plan.proof = .sip(account(sip)) }
        plan.code = try code.map(Self.code)
        let readsInput = tokenFile == "-" || passwordFile == "-" || code != nil
        if let questions = SetupQuestions.atTerminal, !readsInput { try ask(questions, &plan) }
        if case .sip(let account) = plan.proof, account.isPlain, !plan.allowsPlainText {
            throw CommandFailure(
                .usage,
                "\(account.transport) sends calls and the password's proof to another machine in the clear: choose the transport "
                    + "tls or wss, or --allow-plain-text on a network that you trust")
        }
        return plan
    }

    private func account(_ address: String) -> SetupPlan.SIPAccount {
        var account = SetupPlan.SIPAccount(address: address.hasPrefix("sip:") ? address : "sip:\(address)")
        account.server = sipServer
        account.transport = sipTransport ?? account.transport
        account.user = sipUser
        account.hasPlainMedia = allowPlainRtp
        return account
    }

    private func ask(_ questions: SetupQuestions, _ plan: inout SetupPlan) throws {
        if server == nil, plan.code == nil, [tokenFile, tokenEnv, exchangeConfig, sip].allSatisfy({ $0 == nil }) {
            let kind = try Self.given(
                questions.choice("Where the account is", of: ["exchange", "sip"], usual: "exchange"))
            if kind == "sip" { try askForSIP(questions, &plan) } else { try askForExchange(questions, &plan) }
        }
        if source == nil {
            let usual = CardDirectory().cards.isEmpty ? SetupPlan.Source.echo : .card
            let word = try Self.given(
                questions.choice("What the device does in calls", of: Self.sources, usual: usual.rawValue))
            plan.source = SetupPlan.Source(rawValue: word) ?? usual
        }
        if plan.source == .card, device == nil {
            plan.device = try Self.given(
                questions.answer("The sound card, as `handset devices` names it", usual: "default"))
        }
    }

    private func askForExchange(_ questions: SetupQuestions, _ plan: inout SetupPlan) throws {
        let answer = try Self.given(
            questions.answer("The code of `handset user enroll`, or - without one", usual: "-") { answer in
                answer == "-" || (try? EnrollmentCode(answer)) != nil ? nil : "That is not such a code."
            })
        plan.code = try? EnrollmentCode(answer)
        guard plan.code == nil else { return }
        plan.server = try Self.given(
            questions.answer("The exchange's URL", usual: plan.server) { answer in
                (try? ServerURL.argument(answer)) == nil
                    ? "That is not a URL such as https://calls.example.org:8555." : nil
            })
    }

    private func askForSIP(_ questions: SetupQuestions, _ plan: inout SetupPlan) throws {
        let address = try Self.given(
            questions.answer("The account's SIP address, such as alice@example.org", usual: "") { answer in
                answer.split(separator: "@").count == 2 ? nil : "That is not a user and domain."
            })
        var account = account(address)
        let server = try Self.given(
            questions.answer("The SIP server, HOST or HOST:PORT, or - for the address's domain", usual: "-"))
        account.server = server == "-" ? nil : server
        account.transport = try Self.given(
            questions.choice("The transport to the server", of: Self.transports, usual: account.transport))
        if account.isPlain, !plan.allowsPlainText {
            plan.allowsPlainText =
                try Self.given(
                    questions.choice(
                        "It can be intercepted on the network; allow that", of: ["no", "yes"], usual: "no")) == "yes"
        }
        let user = try Self.given(
            questions.answer("The name for the password, or - for that of the address", usual: "-"))
        account.user = user == "-" ? nil : user
        plan.proof = .sip(account)
    }

    private static func given(_ answer: String?) throws(CommandFailure) -> String {
        guard let answer else { throw CommandFailure(.usage, "there was no answer; give options instead") }
        return answer
    }

    // MARK: The account

    private static func code(_ text: String) throws -> EnrollmentCode {
        do throws(EnrollmentCode.Fault) {
            return try EnrollmentCode(text)
        } catch {
            throw CommandFailure(.usage, "the code \(error)")
        }
    }

    /// Joins, and fills in the plan.
    ///
    /// - Returns: The key's file, and that of the authority if it needs one.
    private func join(
        by code: EnrollmentCode, _ plan: inout SetupPlan, _ undo: inout SetupUndo, _ progress: ProgressLines
    ) async throws -> [SetupFiles.File] {
        // The key is on disk before the exchange knows it: after an interruption the same command continues with it.
        let key = try draftKey(plan, &undo)
        undo.keep()
        progress.say("Joining the exchange at \(code.server)")
        let secret = try self.application.secretFile.map { try Self.secret(in: $0) }
        let application = HandsetServiceConfiguration.Application(
            name: "Handset", version: HandsetVersion.current, system: "Linux", key: self.application.key ?? "demo",
            secret: secret ?? "demo")
        let outcome = try await DeviceEnrollment(code, application: application).join(with: key)
        progress.say("Joined as \(outcome.user)")
        let file = "\(plan.name).\(outcome.key.name).key"
        plan.server = code.server
        plan.proof = .key(file: file, user: outcome.user, enrollment: outcome.key.enrollment)
        var files = [(path: "\(plan.folder)/\(file)", text: outcome.key.text)]
        if let roots = outcome.trustRoots {
            plan.hasTrustRoots = true
            files.append((plan.trustRootsPath, String(decoding: roots, as: UTF8.self)))
        }
        return files
    }

    private func draftKey(_ plan: SetupPlan, _ undo: inout SetupUndo) throws -> DeviceLoginKey {
        let files = SetupFiles(plan: plan, group: group)
        if let bytes = try files.read(plan.draftKeyPath) {
            if let key = DeviceLoginKey(pem: String(decoding: bytes, as: UTF8.self), enrollment: "") { return key }
        }
        guard let key = DeviceLoginKey() else {
            throw CommandFailure(
                .failed, "cannot make a key: this machine's OpenSSL has no Ed25519, perhaps in its FIPS mode")
        }
        try files.write([(plan.draftKeyPath, key.text)], &undo)
        return key
    }

    /// The file of what the device logs in with; that of a new account is on disk already.
    private func secret(
        of plan: SetupPlan, _ exchange: SetupExchange?, _ undo: inout SetupUndo, _ progress: ProgressLines
    ) throws -> SetupFiles.File {
        if case .sip = plan.proof {
            let password = try secret(
                passwordFile, passwordEnv, plan.passwordPath, "The SIP account's password", plan, progress)
            guard let password else {
                throw CommandFailure(
                    .usage, "give --password-file or --password-env with the password of the SIP account")
            }
            return (plan.passwordPath, password + "\n")
        }
        if let exchange { return (plan.tokenPath, try makeAccount(exchange, plan, &undo, progress) + "\n") }
        guard let token = try secret(tokenFile, tokenEnv, plan.tokenPath, "The account's media token", plan, progress)
        else {
            throw CommandFailure(
                .usage,
                "give --exchange-config to make an account, or --token-file or --token-env with the media token of one that "
                    + "exists")
        }
        return (plan.tokenPath, token + "\n")
    }

    /// A secret from a file, a variable, an earlier run's file, or the terminal.
    private func secret(
        _ file: String?, _ variable: String?, _ kept: String, _ question: String, _ plan: SetupPlan,
        _ progress: ProgressLines
    ) throws -> String? {
        if file == "-" { return try UserCommand.secretFromInput() }
        if let file { return try Self.secret(in: file) }
        if let variable { return try Self.variable(variable) }
        if let bytes = try SetupFiles(plan: plan, group: group).read(kept) {
            progress.say("Taking the secret in \(kept)")
            return try Self.line(of: bytes, kept)
        }
        guard let questions = SetupQuestions.atTerminal else { return nil }
        return try Self.given(questions.secret(question))
    }

    private static func variable(_ name: String) throws -> String {
        guard let text = ProcessInfo.processInfo.environment[name], !text.isEmpty else {
            throw CommandFailure(
                .usage, "the environment variable \(name) is empty or not set; export it with the secret")
        }
        return text
    }

    private func makeAccount(
        _ exchange: SetupExchange, _ plan: SetupPlan, _ undo: inout SetupUndo, _ progress: ProgressLines
    ) throws -> String {
        try exchange.expectApplication(
            application.key ?? "demo", secret: application.secretFile.map { try Self.secret(in: $0) } ?? "demo")
        // The token is on disk before the exchange knows its digest: an account whose token is lost cannot be used.
        let files = SetupFiles(plan: plan, group: group)
        let token =
            try files.read(plan.tokenPath).map { try Self.line(of: $0, plan.tokenPath) } ?? FreshSecret.make().secret
        try files.write([(plan.tokenPath, token + "\n")], &undo)
        try exchange.addAccount(name, SecretDigest(of: token), &undo, progress)
        return token
    }

    private static func secret(in path: String) throws -> String {
        let bytes: [UInt8]?
        do throws(PrivateFileError) {
            bytes = try PrivateFile.read(path, maximumBytes: 4_096)
        } catch {
            throw CommandFailure(.failed, "\(error)")
        }
        guard let bytes else {
            throw CommandFailure(.failed, "\"\(path)\" does not exist; write the secret into it, or give another path")
        }
        return try line(of: bytes, path)
    }

    private static func line(of bytes: [UInt8], _ path: String) throws -> String {
        let line = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).first
        guard let line else { throw CommandFailure(.failed, "\"\(path)\" is empty") }
        return String(line)
    }

    // MARK: Files

    /// What is copied into the folder.
    private func copies(_ plan: SetupPlan, _ exchange: SetupExchange?) throws -> [SetupFiles.File] {
        var copies: [SetupFiles.File] = []
        if let file = application.secretFile { copies.append((plan.appSecretPath, try Self.secret(in: file) + "\n")) }
        if let roots = try roots(plan, exchange) {
            copies.append((plan.trustRootsPath, String(decoding: roots, as: UTF8.self)))
        }
        return copies
    }

    private func roots(_ plan: SetupPlan, _ exchange: SetupExchange?) throws -> [UInt8]? {
        guard let trustRoots else {
            return plan.server.hasPrefix("https://") ? try exchange?.trustRoots() : nil
        }
        let roots: [UInt8]?
        do throws(PrivateFileError) {
            roots = try PrivateFile.read(trustRoots)
        } catch {
            throw CommandFailure(.failed, "\(error)")
        }
        guard let roots else {
            throw CommandFailure(.failed, "there is no file \"\(trustRoots)\"; check the path of --trust-roots")
        }
        return roots
    }

    // MARK: Trials

    private func tryOut(
        _ plan: SetupPlan, _ configuration: DeviceConfiguration, _ ending: EndRequest, _ progress: ProgressLines
    ) async throws {
        if plan.source == .card {
            progress.say("Playing a tone in every other half second, and listening, for 4 s.")
            let name = plan.device ?? "default"
            let result = try SoundTrial(AudioDeviceConfiguration(playback: name, capture: name)).run()
            Terminal.print(SoundTrialReport(result: result).text)
            guard result.isWell else {
                throw CommandFailure(
                    .soundCardUnusable,
                    "the card cannot be used as it is; `handset devices` lists all. Then repeat this with --device and --force"
                )
            }
        }
        guard !ending.isMade else { throw SetupTrial.interruption }
        let trial = SetupTrial(configuration: configuration, ending: ending, logger: Logger(label: "handset"))
        if case .sip(let account) = plan.proof {
            progress.say("Registering \(account.address) at \(configuration.account.authURL)")
            try await trial.register()
            progress.say("The SIP server has registered the device")
            return
        }
        progress.say("Logging in at \(plan.server), and calling itself")
        let time = try await trial.callItself(waitsForAccount: exchangeConfig != nil)
        progress.say("Media flows both ways after \(time.milliseconds.rounded(toPlaces: 1)) ms")
    }
}

/// Where `handset setup` and `handset enroll` put files, and where the device that they set up keeps its own.
struct SetupPaths: ParsableArguments {
    @Option(help: "Where configurations are.", completion: .directory)
    var folder = "/etc/handset"

    @Option(
        help: "Where the device keeps its login and records; /var/lib/handset/NAME unless given.",
        completion: .directory)
    var state: String?

    @Option(
        help: "Where programs on this machine control the device; /run/handset/NAME/control.sock unless given.",
        completion: .file())
    var control: String?
}

/// The program as which a device that is set up logs in at an exchange.
struct SetupApplication: ParsableArguments {
    @Option(
        name: .customLong("app-key"),
        help: "The program that logs in, as the exchange knows it; demo, as in the examples, unless given.")
    var key: String?

    @Option(
        name: .customLong("app-secret-file"),
        help: "The file with that program's secret, which is copied into the folder.", completion: .file())
    var secretFile: String?
}
