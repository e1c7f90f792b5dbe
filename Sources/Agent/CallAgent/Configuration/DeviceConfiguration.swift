// CallAgent: the device itself. Logs in, holds the connection, answers by policy, runs calls and keeps their records.

public import CallControl
public import ConfigReader
internal import MediaEngine
public import Monitoring
internal import CallVoicemail
internal import Files

/// The contents of a device's configuration file.
public struct DeviceConfiguration: Sendable {
    /// The server and the account to log in with.
    public var account: AccountConfiguration
    /// What the device calls itself.
    public var device = DeviceIdentity()
    /// Which calls it answers, and how.
    public var answer = AnswerPolicy(manner: .answer(after: .zero), callLimit: .automatic)
    /// How invites go.
    public var invites = InviteConfiguration()
    /// Rooms that the device joins after each login.
    public var rooms: [RoomName] = []
    /// What an answered call does.
    public var behaviour = BehaviourConfiguration()
    /// What calls do for which a rule of ``answer`` names one of these.
    public var behaviours: [String: BehaviourConfiguration] = [:]
    /// What kind of machine it runs on.
    public var profile = MachineProfile.desktop
    /// The sound card, for the behaviour `card`.
    public var audio = AudioConfiguration()
    /// Sockets, codec, playout.
    public var media = MediaConfiguration()
    /// Where programs on this machine act on the device; nil for nowhere.
    public var control: ControlConfiguration?
    /// What callers and persons hear while calls are handed over, parked or on hold.
    public var handover = HandoverConfiguration()
    /// What bounds the queues in which callers of flows wait.
    public var queues = QueueConfiguration()
    /// What `handset mcp` gives an agent besides.
    public var mcp = MCPConfiguration()
    /// Where the process shows how it is doing; nil for nowhere.
    public var monitoring: MonitoringConfiguration?
    /// Where the process sends traces of its calls; nil for nowhere.
    public var traces: TraceConfiguration?
    /// Warnings for the owner; the configuration can be used nevertheless.
    public private(set) var warnings: [ConfigProblem] = []

    /// The sound card that calls are to use; nil if none does.
    var sound: CallSound? {
        guard usesCard else { return nil }
        // Above the media workers': the card cannot wait.
        return audio.sound(realtimePriority: media.realtimePriority.map { min(99, $0 + 5) })
    }

    /// Whether calls can be on the sound card.
    public var usesCard: Bool { behaviour.source == .card || behaviours.values.contains { $0.source == .card } }

    /// Where mute and volume are kept for the next start; nil without a sound card, and for nowhere.
    public var keptSoundPath: String? {
        guard sound != nil else { return nil }
        return audio.settingsFile ?? account.sessionFile.map { $0 + ".sound" }
    }

    /// Makes a configuration of defaults around an account.
    public init(account: AccountConfiguration) { self.account = account }

    /// Reads and checks a configuration file, or one account of several in it (``AccountsConfiguration`` has all).
    ///
    /// - Parameters:
    ///   - fileChecks: Which of the files that it names are checked.
    ///   - server: Base URL of the server; it replaces those in the file, which are not checked then.
    ///   - name: Which of several accounts; nil for the only one.
    /// - Throws: ``ConfigError`` with every problem that the file has.
    public static func read(
        path: String, fileChecks: FileChecks = .inputs, server: String? = nil, account name: String? = nil
    ) throws(ConfigError) -> DeviceConfiguration {
        let document = try ConfigDocument.read(path: path, fileChecks: fileChecks)
        return try AccountsConfiguration.read(document, server: server).account(name, in: document)
    }

    /// Keeps the warnings of the file that it was read from.
    mutating func note(warnings: [ConfigProblem]) { self.warnings = warnings }

    /// The keys of a file's root.
    struct Keys: AccountKeys {
        let account = AccountSections.account.unset("`accounts`, of which one is required")
        let device = AccountSections.device
        let profile = ConfigKey.choice(
            "profile", of: MachineProfile.self, "defaults that suit the machine: `pi` is a small board"
        ).defaulting(to: .desktop)
        let rooms = AccountSections.rooms
        let invites = AccountSections.invites
        let answer = AccountSections.answer
        let behaviour = AccountSections.behaviour
        let behaviours = AccountSections.behaviours
        let audio = ConfigKey.section(
            "audio", AudioConfiguration.Keys.self, "the sound card, with `source: card` ([sound.md](sound.md))")
        let control = ConfigKey.section(
            "control", ControlConfiguration.Keys.self,
            "where programs control the device ([control.md](control.md)); without this section, nowhere")
        let handover = ConfigKey.section(
            "handover", HandoverConfiguration.Keys.self,
            "what is heard while calls are handed over, parked or on hold ([bridging.md](bridging.md))")
        let queues = ConfigKey.section(
            "queues", QueueConfiguration.Keys.self, "the queues in which callers of flows wait ([flows.md](flows.md))")
        let mcp = ConfigKey.section(
            "mcp", MCPConfiguration.Keys.self,
            "what `handset mcp` gives an agent besides ([mcp.md](mcp.md))")
        let media = ConfigKey.section("media", MediaConfiguration.Keys.self, "sockets, codec and playout")
        let monitoring = ConfigKey.section(
            "monitoring", MonitoringConfiguration.Keys.self,
            "where `handset run` shows metrics and health ([monitoring.md](monitoring.md)); without this section, nowhere"
        )
        let traces = ConfigKey.section(
            "traces", TraceConfiguration.Keys.self,
            "where `handset run` sends traces of calls ([tracing.md](tracing.md)); without this section, nowhere")
        let accounts = ConfigKey.sections(
            "accounts", AccountEntry.Keys.self,
            "several accounts in one process, \(AccountsConfiguration.mostAccounts) at most "
                + "([accounts.md](accounts.md#several-accounts-in-one-process)); in place of `account` and of the sections that are "
                + "each account's own"
        )
    }

    /// The keys of such a file.
    public static var keys: [ConfigKeyEntry] { Keys.entries }

    /// Reads the tree of a whole file with one account, noting every problem.
    init(_ root: ConfigSection, server: String? = nil, _ problems: inout [ConfigProblem]) {
        self.init(account: AccountConfiguration(server: AccountConfiguration.defaultServer))
        let before = problems.count
        let variables = root.secretVariables
        let root = KeyedSection(root, Keys.self, &problems)
        if !root.has(\.accounts) {
            var missing: [ConfigProblem] = []
            root.require(\.account, &missing)
            // Said before anything of unknown keys, as of every key that is required.
            problems.insert(contentsOf: missing, at: before)
        }
        readAccount(root, server: server, &problems)
        readProcess(root, &problems)
        withhold(variables)
        if root.has(\.audio), !usesCard, !problems.contains(where: { $0.key == "behaviour.source" }) {
            // No fault: `handset call --device` uses it.
            problems.append(
                root.warning(
                    \.audio, "is for behaviour.source: card, and the source is another; `handset run` does not use it"))
        }
        warnOfKeys(root, &problems)
        Self.checkPorts(root, for: [self], &problems)
    }
}

extension DeviceConfiguration {
    /// Reads what each account has of its own.
    mutating func readAccount<Keys: AccountKeys>(
        _ root: KeyedSection<Keys>, server: String?, _ problems: inout [ConfigProblem]
    ) {
        if let section = root.value(\Keys.account, &problems) {
            account = AccountConfiguration(section, server: server, &problems)
        }
        if let section = root.value(\Keys.device, &problems) {
            device = DeviceIdentity(section, &problems)
            for (file, key) in account.keptFiles {
                // Each would take the place of the other.
                guard let records = device.callRecords, Self.areSame(records, file, section.fileChecks) else {
                    continue
                }
                let message = "is the file of \(key) already; give each a file of its own"
                problems.append(section.problem(\.callRecords, message))
            }
        }
        let answers = root.value(\Keys.answer, &problems)
        if let answers { answer = AnswerPolicy(answers, &problems) }
        let section = root.value(\Keys.behaviour, &problems)
        if let section {
            behaviour = BehaviourConfiguration(section, &problems)
            takeOverCallees(root, section, &problems)
        }
        let others = root.value(\Keys.behaviours, &problems) ?? []
        behaviours = BehaviourConfiguration.named(others, besides: section, behaviour, &problems)
        if root.fileChecks != .none {
            for (_, behaviour) in allBehaviours {
                FlowConfiguration.judgeCallees(of: behaviour, by: account, &problems)
            }
        }
        if let answers {
            let ownName = section?.value(\.name, &problems)
            answer.table = AnswerTableReader(account, behaviours: behaviours, ownName: ownName).table(
                answers, answer, &problems)
        }
        AnswerTableReader.warnOfUnused(others, answer.table, &problems)
        if account.sip != nil {
            answer.callers = answer.callers.mapped(account.callers)
            judgeTransfers(answers, &problems)
            judgeRedirections(root, &problems)
        }
        judgeNotices(root, &problems)
        if let section = root.value(\Keys.invites, &problems) { invites = InviteConfiguration(section, &problems) }
        rooms = root.value(\Keys.rooms, &problems) ?? []
        if account.sip != nil, root.has(\Keys.rooms) {
            problems.append(root.problem(\Keys.rooms, "is for an exchange: a SIP server has no rooms"))
        }
    }

    /// Takes the list of callees from where it was before `account.callees`.
    private mutating func takeOverCallees<Keys: AccountKeys>(
        _ root: KeyedSection<Keys>, _ section: KeyedSection<BehaviourConfiguration.Keys>,
        _ problems: inout [ConfigProblem]
    ) {
        var ignored: [ConfigProblem] = []  // Reported where the sections are read.
        guard let bot = section.value(\.bot, &ignored), let former = BotConfiguration.formerCallees(bot) else { return }
        guard account.callees == nil else {
            if let section = root.value(\Keys.account, &ignored) {
                let message =
                    "is given together with behaviour.bot.requests.calls.callees, which is its former name; remove that one"
                problems.append(section.problem(\.callees, message))
            }
            return
        }
        account.callees = account.listing(former)
    }

    /// Calls at a SIP server may cost money, so a peer may transfer the device only to targets that the file names.
    private mutating func judgeTransfers(
        _ section: KeyedSection<AnswerPolicy.Keys>?, _ problems: inout [ConfigProblem]
    ) {
        guard let section, section.has(\.transfers) else {
            answer.transfers = .refuse
            return
        }
        guard answer.transfers != .refuse, account.callees?.isEmpty != false else { return }
        problems.append(
            section.warning(
                \.transfers,
                "is \(answer.transfers.rawValue), and account.callees is empty, so every transfer is refused; list there who "
                    + "may be called"))
    }

    /// Following redirections needs a list of callees.
    private func judgeRedirections<Keys: AccountKeys>(_ root: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        var ignored: [ConfigProblem] = []  // Reported where the sections are read.
        guard let section = root.value(\Keys.account, &ignored)?.value(\.sip, &ignored), section.has(\.redirections),
            account.followsRedirections, account.callees?.isEmpty != false
        else { return }
        problems.append(
            section.warning(
                \.redirections,
                "is true, and account.callees is empty, so no redirection is followed; list there who may be called"
            ))
    }

    /// The messages of all mailboxes of an account are counted together, because its address is one.
    private func judgeNotices<Keys: AccountKeys>(_ root: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        if account.sip != nil, mailboxes.contains(where: { $0.plan.menu.map { $0.pin == nil } ?? false }) {
            problems.append(
                root.problem(
                    \Keys.behaviour,
                    "has a voicemail.menu without a pin at a SIP account, where a caller may give itself the name of an owner; give the "
                        + "menu pin_file or pin_env"))
        }
        let lists = Set(mailboxes.map(\.plan.notices).filter { !$0.isEmpty })
        if lists.count > 1 {
            problems.append(
                root.problem(
                    \Keys.behaviours,
                    "has mailboxes with other lists in notify or announce_to; give them the same, because others are notified of all "
                        + "mailboxes of an account together"))
        }
        guard !lists.isEmpty, account.sip == nil else { return }
        problems.append(
            root.warning(
                \Keys.behaviour,
                "has voicemail.notify or announce_to, which are for a SIP account; an exchange notifies no others, and nothing uses them"
            ))
    }

    /// Reads what all accounts of a process have in common.
    mutating func readProcess(_ root: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        profile = root.value(\.profile, &problems)
        profile.apply(to: &audio)
        profile.apply(to: &media)
        // Telephones know no ICE.
        if account.sip != nil { media.offers = .sdes }
        if let section = root.value(\.audio, &problems) {
            audio.read(section, &problems)
            rejectSharedSettings(section, &problems)
        }
        if let section = root.value(\.media, &problems) { media.read(section, &problems) }
        control = root.value(\.control, &problems).flatMap { ControlConfiguration($0, &problems) }
        if let section = root.value(\.handover, &problems) { handover = HandoverConfiguration(section, &problems) }
        if let section = root.value(\.queues, &problems) { queues = QueueConfiguration(section, &problems) }
        if let section = root.value(\.mcp, &problems) { mcp = MCPConfiguration(section, &problems) }
        monitoring = root.value(\.monitoring, &problems).flatMap { MonitoringConfiguration($0, &problems) }
        traces = root.value(\.traces, &problems).flatMap { TraceConfiguration($0, &problems) }
    }

    /// Compares the ports of calls without ICE with the calls that may need them.
    static func checkPorts(
        _ root: KeyedSection<Keys>, for accounts: [DeviceConfiguration], _ problems: inout [ConfigProblem]
    ) {
        var ignored: [ConfigProblem] = []  // Reported where the section is read.
        guard let section = root.value(\.media, &ignored), let media = accounts.first?.media else { return }
        guard let ports = media.callPorts else {
            guard media.port != 0, accounts.contains(where: { $0.account.sip != nil }) else { return }
            let message =
                "is used by calls with ICE alone. Each call without ICE, as those of telephones, has a port of its own: with ports: "
                + "FIRST-LAST it is one of these, for a firewall rule"
            problems.append(section.warning(\.port, message))
            return
        }
        let calls = accounts.reduce(0) { sum, account in
            guard case .calls(let limit) = account.answer.callLimit else { return sum }
            return sum + limit
        }
        if ports.count < calls {
            let message =
                "has \(ports.count) ports, and answer.max_calls allows \(calls) calls at a time; give it at least \(2 * calls), because "
                + "a port rests for 60 s after its call"
            problems.append(section.problem(\.ports, message))
        } else if ports.count < 2 * calls {
            let message =
                "has \(ports.count) ports for \(calls) calls at a time; a port rests for 60 s after its call, and for less if calls last "
                + "less than a minute on average and there are fewer than \(2 * calls) ports"
            problems.append(section.warning(\.ports, message))
        }
    }

    /// Telephones without DTLS find no common keys with a device that may write none.
    func warnOfKeys<Keys: AccountKeys>(_ root: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        guard account.sip != nil, account.allowsPlainText, !account.isSignalingPrivate, !media.allowsPlainMedia else {
            return
        }
        let message =
            "reaches a SIP server in the clear, so that no keys are written into descriptions, and media is protected by "
            + "DTLS alone; for telephones without DTLS use transport: tls, or media.allow_plain_rtp: true"
        problems.append(root.warning(\Keys.account, message))
    }

    /// Each file would take the place of the other.
    fileprivate func rejectSharedSettings(
        _ section: KeyedSection<AudioConfiguration.Keys>, _ problems: inout [ConfigProblem]
    ) {
        guard let settings = audio.settingsFile else { return }
        let records = device.callRecords.map { [($0, "device.call_records")] } ?? []
        for (file, key) in account.keptFiles + records {
            guard Self.areSame(settings, file, section.fileChecks) else { continue }
            problems.append(
                section.problem(\.settingsFile, "is the file of \(key) already; give each a file of its own"))
        }
    }

    /// Whether two paths lead to one file.
    static func areSame(_ path: String, _ other: String, _ checks: FileChecks) -> Bool {
        path == other || (checks != .none && FilePlace(path: path) == FilePlace(path: other))
    }
}

/// What a device calls itself.
public struct DeviceIdentity: Sendable, Equatable {
    /// Unique among the user's devices; with nil a new one is generated at each start.
    public var id: DeviceID?
    /// For people.
    public var name = "Handset"
    /// A file with a record of every call, answered or missed (contract CALL-7); nil keeps none.
    public var callRecords: String?
    /// Days for which those records are kept; nil for as long as there is room for them.
    public var callRecordDays: Int?
    /// Where pushes go while the device is not connected; it replaces the earlier list at the service. With nil the
    /// earlier list stays, and an empty list ends pushes (DEV-2).
    public var push: [PushTarget]?

    /// One way to push to the device.
    public struct PushTarget: Sendable, Equatable {
        /// Which push service: `apns`, `fcm` or any other name that the exchange's webhook knows.
        public var kind: String
        /// The push service's token of the device, up to 4,096 bytes.
        public var token: Secret

        /// Makes a target.
        public init(kind: String, token: Secret) {
            self.kind = kind
            self.token = token
        }

        /// The keys of one of `push`.
        struct Keys: ConfigKeys {
            let kind = ConfigKey.nameText(
                "kind", of: "a push token's kind", "`apns`, `fcm`, or any name that the receiver of the pushes knows"
            ).required
            let token = ConfigKey.secret("token", "the device's token at that service").required
        }

        init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
            let kind = section.value(\.kind, &problems)
            let token = section.requiredSecret(\.token, &problems)
            guard let kind, let token else { return nil }
            self.init(kind: kind, token: token)
        }
    }

    /// Makes an identity without a fixed id.
    public init() {}

    /// The keys of the section `device`.
    struct Keys: ConfigKeys {
        let id = ConfigKey<DeviceID>.name("id", of: "the device's id", "unlike that of any other device of the user")
            .unset("made at each start, or kept in `session_file`")
        let name = ConfigKey.string("name", "for people").defaulting(to: DeviceIdentity().name)
        let callRecords = ConfigKey.outputFile(
            "call_records", "one line of JSON for each call's beginning and end, on disk at once; 20 MiB at most")
        let callRecordDays = ConfigKey.integer(
            "call_record_days", in: 1...36_500, unit: "days", "remove older records from `call_records`"
        ).unset("kept while there is room")
        let push = ConfigKey.sections(
            "push", PushTarget.Keys.self,
            "where the exchange pushes to while the device is away, 8 at most; `[]` ends that"
        ).unset("what the exchange has from before")
    }

    init(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        id = section.value(\.id, &problems)
        section.read(\.name, into: &name, &problems)
        callRecords = section.value(\.callRecords, &problems)
        callRecordDays = section.value(\.callRecordDays, &problems)
        if callRecords == nil, callRecordDays != nil, !section.has(\.callRecords) {
            problems.append(
                section.problem(\.callRecordDays, "is for call_records, which is missing; add that, or remove this key")
            )
        }
        let targets = section.value(\.push, &problems)
        push = targets?.compactMap { PushTarget($0, &problems) }
        if let count = targets?.count, count > 8 {
            problems.append(section.problem(\.push, "has \(count) entries; 8 are allowed"))
        }
    }
}

extension AnswerPolicy.Callers {
    fileprivate func mapped(_ forms: (UserID) -> Set<UserID>) -> Self {
        switch self {
        case .everybody: self
        case .only(let names): .only(Set(names.flatMap(forms)))
        case .everybodyBut(let names): .everybodyBut(Set(names.flatMap(forms)))
        }
    }
}

extension AnswerPolicy {
    /// What becomes of a call, by the names of `mode`.
    enum Mode: String, CaseIterable {
        case auto, ring, reject
    }

    /// The keys of the section `answer`.
    struct Keys: ConfigKeys {
        let mode = ConfigKey.choice("mode", of: Mode.self, "answer, ring until a user or program decides, or reject")
            .defaulting(to: .auto)
        let delay = ConfigKey.milliseconds("delay_ms", in: 0...60_000, "how long to ring before answering")
            .defaulting(to: .zero)
        let callLimit = ConfigKey.callLimit(
            "max_calls", "calls at a time; `auto`: as many as the machine carries. The next caller gets busy"
        ).defaulting(to: .automatic)
        let ringLimit = ConfigKey.seconds(
            "ring_seconds", in: 1...86_400,
            "how long to ring without a decision; then the caller gets no answer, even if it would wait. With `mode: auto` it limits invites "
                + "that are no calls, too"
        ).defaulting(to: AnswerPolicy(manner: .ring, callLimit: .automatic).ringLimit)
        let allow = ConfigKey<[UserID]>.names("allow", of: "a user's id", "answer these users only").unset("all users")
        let deny = ConfigKey<[UserID]>.names(
            "deny", of: "a user's id", "answer all users except these; not together with `allow`"
        ).unset("none")
        let transfers = ConfigKey.choice(
            "transfers", of: Transfers.self,
            "transfers that a peer may request, to `account.callees`: none, those at the account's own service, or all"
        ).unset("`service` at an exchange, `refuse` at a SIP server")
        let timeZone = ConfigKey.string(
            "time_zone",
            "the place whose clocks `rules` use: a name of the tz database, such as `Europe/Berlin`"
        ).unset("none: rules with `weekdays`, `hours` or `holiday` are refused")
        let holidays = ConfigKey.path(
            "holidays_file", readable: true,
            "with `rules`: holidays, one on each line: `2026-04-03`, or `12-25` for every year"
        ).unset("no holidays")
        let rules = ConfigKey.sections(
            "rules", AnswerRuleKeys.self,
            "what happens to a call that may get through, by the first rule that matches ([policy.md](policy.md)), \(AnswerTable.most) at most; without one that matches `mode` decides"
        ).unset("none")
    }

    init(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let mode = section.value(\.mode, &problems)
        let delay = section.value(\.delay, &problems)
        let limit = section.value(\.callLimit, &problems)
        let allowed = section.value(\.allow, &problems)
        let denied = section.value(\.deny, &problems)
        if allowed != nil, denied != nil {
            problems.append(section.problem(\.deny, "is given together with allow; keep one of them"))
        }
        let manner: Manner =
            switch mode {
            case .auto: .answer(after: delay)
            case .ring: .ring
            case .reject: .reject
            }
        let callers: Callers =
            if let allowed {
                .only(Set(allowed))
            } else if let denied {
                .everybodyBut(Set(denied))
            } else {
                .everybody
            }
        self.init(manner: manner, callLimit: limit, callers: callers)
        section.read(\.ringLimit, into: &ringLimit, &problems)
        section.read(\.transfers, into: &transfers, &problems)
    }
}

extension ConfigKey<AnswerPolicy.CallLimit> {
    /// A number of calls, or `auto`.
    fileprivate static func callLimit(_ name: String, _ text: String) -> Self {
        let range = 1...10_000
        let allowed = "\(range.lowerBound) to \(range.upperBound)"
        return .parsed(
            name, "`auto` or whole number", in: allowed, text, show: { $0 == .automatic ? "auto" : nil }
        ) { text throws(ConfigValueFault) in
            if text == "auto" { return .automatic }
            guard let number = Int(text.filter { $0 != "_" }), range.contains(number) else {
                throw ConfigValueFault(
                    "must be auto, or a whole number from \(allowed), not \"\(text.prefix(40))\"")
            }
            return .calls(number)
        }
    }
}

extension DeviceConfiguration {
    /// Sections whose changes a device takes while it runs; ``BehaviourConfiguration`` as far as ``adopt(_:)`` says.
    static let adoptedSections = ["answer", "behaviour", "behaviours", "invites"]

    /// Whether a device takes a changed key of a file with one account while it runs.
    ///
    /// - Parameter isBehaviourTaken: What ``adopt(_:)`` returned. Rules name behaviours, so that all of their table waits with these.
    public static func takes(_ key: String, isBehaviourTaken: Bool) -> Bool {
        let waiting = ["behaviour", "behaviours", "answer.rules", "answer.time_zone", "answer.holidays_file"]
        func isWithin(_ sections: [String]) -> Bool {
            sections.contains { key == $0 || key.hasPrefix($0 + ".") || key.hasPrefix($0 + "[") }
        }
        // A section that is new, or gone, as a whole has keys that wait.
        return isWithin(adoptedSections) && (isBehaviourTaken || key != "answer" && !isWithin(waiting))
    }

    /// Takes from another configuration what holds for calls that begin from now on.
    ///
    /// - Returns: Whether its behaviour was taken, too. A sound card, programs and bots are set up at a device's start, so
    ///   a behaviour is not taken that needs another one of them; then the earlier one stays as a whole.
    mutating func adopt(_ other: DeviceConfiguration) -> Bool {
        let table = answer.table
        answer = other.answer
        invites = other.invites
        handover = other.handover
        queues = other.queues
        guard needs == other.needs else {
            // The new rules may name behaviours that are not there yet.
            answer.table = table
            return false
        }
        let capture = behaviour.capture
        behaviour = other.behaviour
        behaviours = other.behaviours
        behaviour.capture = capture
        return true
    }
}

extension DeviceConfiguration {
    /// What a device sets up for its behaviours at its start, by their names.
    private var needs: [String: BehaviourConfiguration.Source.Needs] {
        Dictionary(uniqueKeysWithValues: allBehaviours.map { ($0.name, $0.behaviour.needs) }).filter {
            $0.value != .nothing
        }
    }

    /// Has programs and voices not inherit these variables.
    mutating func withhold(_ variables: Set<String>) {
        handover.withheldVariables = variables
        behaviour.withhold(variables)
        for name in behaviours.keys { behaviours[name]?.withhold(variables) }
    }
}

extension BehaviourConfiguration {
    /// With a program or bot as source the attachment is that, too.
    fileprivate var needs: Source.Needs { (attachment ?? source).needs }
}
