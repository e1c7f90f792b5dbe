internal import ArgumentParser
internal import AudioDevices
internal import CallAgent
internal import ConfigReader
internal import Enrollment
internal import ExchangeCore
internal import ExchangeServer
internal import Glibc
internal import Logging
internal import PrivateFiles
internal import RegularFiles
internal import SignalWire
internal import SignalingClient
internal import Timekeeping

/// `handset setup`: from nothing to a device that can run.
struct SetupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "setup", abstract: "Write a device's configuration, and try it.",
        discussion: """
            Writes FOLDER/NAME.yaml and FOLDER/NAME.token for `handset run` and the unit handset@NAME, checks them, tries \
            the sound card, logs in, and has the device call itself. On a terminal it asks for what no option says. \
            The account is made in the exchange of --exchange-config, on this machine; or --token-file has the media token \
            of one that there is; or --enroll has the code of one. docs/install.md shows each.
            """)

    @Argument(help: "The device's name: of its unit, its account and its files.")
    var name: String

    @Option(help: "The exchange's base URL; \(SetupPlan(name: "").server) unless given.")
    var server: String?

    @Option(help: "Make the account in this exchange: its configuration, which names a users_file.")
    var exchangeConfig: String?

    @Option(help: "Take the account whose media token is in this file; \"-\" is standard input.")
    var tokenFile: String?

    @Option(help: "Join the exchange by this code of `handset user enroll`; \"-\" reads it from standard input.")
    var enroll: String?

    @Option(help: "Certificates to trust in addition to the system's; they are copied into the folder.")
    var trustRoots: String?

    @Option(help: "What the device does in calls: card, echo, tone or silence; echo unless given.")
    var source: String?

    @Option(help: "The sound card, with --source card; see `handset devices`.")
    var device: String?

    @Option(help: "Defaults that suit the machine: pi for a small board.")
    var profile: String?

    @Option(help: "Where configurations are.")
    var folder = "/etc/handset"

    @Option(help: "Where the device keeps its login and records; /var/lib/handset/NAME unless given.")
    var state: String?

    @Option(help: "Where programs on this machine control the device; /run/handset/NAME/control.sock unless given.")
    var control: String?

    @Option(help: "The program that logs in, as the exchange knows it; demo, as in the examples, unless given.")
    var appKey: String?

    @Option(help: "The file with that program's secret, which is copied into the folder.")
    var appSecretFile: String?

    @Option(
        help: """
            The unit's user and its group, which may read the files, and gets the state's folder; if there is none, only \
            their owner may.
            """)
    var group = "handset"

    @Flag(help: "Replace a configuration that there is.")
    var force = false

    @Flag(help: "Only write and check.")
    var noTrial = false

    @Flag(help: "Enable and start the unit handset@NAME at the end.")
    var enable = false

    @OptionGroup var logs: LogOptions

    func validate() throws {
        if let problem = SetupPlan.problem(withName: name) { throw ValidationError(problem) }
        if exchangeConfig != nil, tokenFile != nil {
            throw ValidationError("--exchange-config and --token-file exclude each other.")
        }
        if enroll != nil, exchangeConfig != nil || tokenFile != nil || server != nil || trustRoots != nil {
            throw ValidationError(
                "--enroll says by itself what --exchange-config, --token-file, --server and --trust-roots do.")
        }
        guard (appKey == nil) == (appSecretFile == nil) else {
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

    private static let sources = SetupPlan.Source.allCases.map(\.rawValue)

    func run() async throws {
        logs.bootstrap()
        let progress = ProgressLines()
        var plan = try plan()
        // A key that has not logged in yet tells of a run that was interrupted.
        let resumes = enroll != nil && Self.isThere(plan.draftKeyPath)
        guard force || resumes || !Self.isThere(plan.configurationPath) else {
            throw CommandFailure(.failed, "there is a \(plan.configurationPath) already; --force replaces it")
        }
        let copies = try copies(plan)
        let proof: [(path: String, text: String)]
        if let code = try code(plan) {
            proof = try await join(by: code, &plan, progress)
        } else {
            proof = [(plan.tokenPath, try token(of: plan, progress) + "\n")]
        }
        try write(proof + copies + [(plan.configurationPath, plan.text)], plan, progress)
        progress.say("Wrote \(plan.configurationPath) and \(proof[0].path)")
        try ConfigurationCheck.expect("run", path: plan.configurationPath)
        let configuration = try DeviceConfiguration.read(path: plan.configurationPath, fileChecks: .all)
        for warning in configuration.warnings { progress.warn("\(warning)") }
        if !noTrial { try await tryOut(plan, configuration, progress) }
        try? PrivateFile.remove(plan.draftKeyPath)
        Terminal.print("\(plan.configurationPath): good for `handset run`")
        guard enable else {
            progress.say("To run it now and at each start: systemctl enable --now handset@\(name)")
            return
        }
        // A unit that runs already takes the new configuration.
        try SystemProgram.become(["sh", "-c", "systemctl enable \"$0\" && systemctl restart \"$0\"", "handset@\(name)"])
    }

    // MARK: Answers

    private func plan() throws -> SetupPlan {
        var plan = SetupPlan(name: name)
        // The configuration is read from its own folder, and not from this one.
        plan.folder = RegularFile.absolute(folder)
        plan.hasTrustRoots = trustRoots != nil
        if let state { plan.state = RegularFile.absolute(state) }
        if let control { plan.controlSocket = RegularFile.absolute(control) }
        plan.appKey = appKey
        plan.server = server ?? plan.server
        plan.source = source.flatMap { SetupPlan.Source(rawValue: $0) } ?? plan.source
        plan.device = device
        plan.profile = profile
        guard isatty(STDIN_FILENO) == 1, tokenFile != "-", enroll == nil else { return plan }
        let questions = SetupQuestions { question in
            Terminal.write(question, to: STDERR_FILENO)
            return readLine(strippingNewline: true)
        }
        if server == nil, tokenFile == nil, exchangeConfig == nil {
            let answer = try Self.given(
                questions.answer("The code of `handset user enroll`, or - without one", usual: "-") { answer in
                    answer == "-" || (try? EnrollmentCode(answer)) != nil ? nil : "That is no such code."
                })
            plan.code = try? EnrollmentCode(answer)
        }
        if server == nil, plan.code == nil {
            plan.server = try Self.given(questions.answer("The exchange's URL", usual: plan.server))
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
        return plan
    }

    private static func given(_ answer: String?) throws(CommandFailure) -> String {
        guard let answer else { throw CommandFailure(.usage, "there was no answer; give options instead") }
        return answer
    }

    // MARK: The account

    private func code(_ plan: SetupPlan) throws -> EnrollmentCode? {
        guard let enroll else { return plan.code }
        do throws(EnrollmentCode.Fault) {
            return try EnrollmentCode(enroll == "-" ? UserCommand.line() : enroll)
        } catch {
            throw CommandFailure(.usage, "the code \(error)")
        }
    }

    /// Joins, and fills in the plan.
    ///
    /// - Returns: The key's file, and that of the authority if it needs one.
    private func join(
        by code: EnrollmentCode, _ plan: inout SetupPlan, _ progress: ProgressLines
    ) async throws -> [(path: String, text: String)] {
        // The key is on disk before the exchange knows it: whatever happens then, the same command goes on with it.
        let key = try draftKey(plan)
        progress.say("Joining the exchange at \(code.server)")
        let secret = try appSecretFile.map { try Self.secret(in: $0) }
        let application = HandsetServiceConfiguration.Application(
            name: "Handset", version: HandsetVersion.current, system: "Linux", key: appKey ?? "demo",
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

    private func draftKey(_ plan: SetupPlan) throws -> DeviceLoginKey {
        if let bytes = try Self.own(plan.draftKeyPath, plan) {
            if let key = DeviceLoginKey(pem: String(decoding: bytes, as: UTF8.self), enrollment: "") { return key }
        }
        guard let key = DeviceLoginKey() else {
            throw CommandFailure(.failed, "this machine's OpenSSL has no Ed25519, perhaps in its FIPS mode")
        }
        try write([(plan.draftKeyPath, key.text)], plan)
        return key
    }

    private func token(of plan: SetupPlan, _ progress: ProgressLines) throws -> String {
        if tokenFile == "-" { return try UserCommand.secretFromInput() }
        if let tokenFile { return try Self.secret(in: tokenFile) }
        if let exchangeConfig { return try makeAccount(exchangeConfig, plan, progress) }
        guard let token = try keptToken(plan) else {
            throw CommandFailure(
                .usage,
                "give --exchange-config to make an account, or --token-file with the media token of one that there is")
        }
        progress.say("Taking the token in \(plan.tokenPath)")
        return token
    }

    private func makeAccount(_ exchange: String, _ plan: SetupPlan, _ progress: ProgressLines) throws -> String {
        var place = UsersPlace()
        (place.config, place.usersFile) = (exchange, nil)
        let (file, configured) = try place.resolve(makesFile: true)
        // The token is on disk before the exchange knows its digest: an account whose token is lost is of no use.
        let kept = try keptToken(plan)
        let token = kept ?? FreshSecret.make().secret
        if kept == nil { try write([(plan.tokenPath, token + "\n")], plan) }
        let digest = SecretDigest(of: token)
        let id = UserID(ours: name)
        var isAdded = false
        do {
            try file.change { users in
                guard let account = (configured + users).first(where: { ([$0.id] + $0.publicIDs).contains(id) }) else {
                    users.append(Account(id: id, mediaTokens: [digest]))
                    isAdded = true
                    return
                }
                // An earlier attempt has made it.
                guard !account.mediaTokens.contains(digest) else { return }
                throw CommandFailure(
                    .failed,
                    "the exchange has a user \"\(name)\" already: give its media token with --token-file, or choose another "
                        + "name")
            }
        } catch {
            if kept == nil { try? PrivateFile.remove(plan.tokenPath) }
            throw error
        }
        if isAdded { progress.say("Added the user \(name) to \(file.path)") }
        return token
    }

    /// The token that an earlier run wrote.
    private func keptToken(_ plan: SetupPlan) throws -> String? {
        try Self.own(plan.tokenPath, plan).map { try Self.line(of: $0, plan.tokenPath) }
    }

    private static func secret(in path: String) throws -> String {
        let bytes: [UInt8]?
        do throws(PrivateFileError) {
            bytes = try PrivateFile.read(path, maximumBytes: 4_096)
        } catch {
            throw CommandFailure(.failed, "\(error)")
        }
        return try line(of: bytes ?? [], path)
    }

    private static func line(of bytes: [UInt8], _ path: String) throws -> String {
        let line = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).first
        guard let line else { throw CommandFailure(.failed, "there is nothing in \"\(path)\"") }
        return String(line)
    }

    // MARK: Files

    /// What is copied into the folder.
    private func copies(_ plan: SetupPlan) throws -> [(path: String, text: String)] {
        var copies: [(path: String, text: String)] = []
        if let appSecretFile { copies.append((plan.appSecretPath, try Self.secret(in: appSecretFile) + "\n")) }
        if let trustRoots {
            let roots: [UInt8]?
            do throws(PrivateFileError) {
                roots = try PrivateFile.read(trustRoots)
            } catch {
                throw CommandFailure(.failed, "\(error)")
            }
            guard let roots else { throw CommandFailure(.failed, "there is no file \"\(trustRoots)\"") }
            copies.append((plan.trustRootsPath, String(decoding: roots, as: UTF8.self)))
        }
        return copies
    }

    private static func isThere(_ path: String) -> Bool { (try? RegularFile.checkAccess(path, F_OK)) != nil }

    /// Writes files into the plan's folder, and makes that of the state. All by descriptors, because root writes here, perhaps into
    /// folders that others may write to as well.
    ///
    /// - Parameter progress: Where a folder is reported in which other users may replace what is there.
    private func write(
        _ files: [(path: String, text: String)], _ plan: SetupPlan, _ progress: ProgressLines? = nil
    ) throws {
        do throws(PrivateFileError) {
            let folder = try HeldFolder(making: plan.folder, mode: 0o755)
            let state = try HeldFolder(making: plan.state, parents: 0o755)
            // The unit's user, who has its group's name, owns the state's folder after the first time.
            for place in Set(folder.exposed + state.exposed.filter { $0 != plan.state }).sorted() {
                progress?.warn(
                    "other users may replace what is in \(place), and so the device's files; `chmod go-w` it as root's, or "
                        + "choose another --folder or --state")
            }
            try state.hand(toUser: group)
            for (path, text) in files {
                let name = path.split(separator: "/").last.map(String.init) ?? path
                try folder.replace(name, with: Array(text.utf8), for: reader(of: path, plan))
            }
        } catch {
            throw CommandFailure(.failed, "\(error)")
        }
    }

    private func reader(of path: String, _ plan: SetupPlan) -> HeldFolder.Reader {
        // A key is for the unit's user alone.
        if path.hasSuffix(".key") { return .user(group) }
        return path == plan.draftKeyPath ? .owner : .group(group)
    }

    /// Reads a file that an earlier run may have left in the plan's folder.
    private static func own(_ path: String, _ plan: SetupPlan) throws -> [UInt8]? {
        guard isThere(path) else { return nil }
        do throws(PrivateFileError) {
            let name = path.split(separator: "/").last.map(String.init) ?? path
            return try HeldFolder(making: plan.folder).read(name, maximumBytes: 4_096)
        } catch {
            throw CommandFailure(.failed, "\(error)")
        }
    }

    // MARK: Trials

    private func tryOut(
        _ plan: SetupPlan, _ configuration: DeviceConfiguration, _ progress: ProgressLines
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
        progress.say("Logging in at \(plan.server), and calling itself")
        let trial = SetupTrial(configuration: configuration, logger: Logger(label: "handset"))
        let time = try await trial.callItself(waitsForAccount: exchangeConfig != nil)
        progress.say("Media flows both ways after \(time.milliseconds.rounded(toPlaces: 1)) ms")
    }
}
