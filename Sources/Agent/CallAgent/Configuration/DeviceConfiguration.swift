// CallAgent: the device itself. Logs in, holds the connection, answers by policy, runs calls and keeps their records.

public import CallControl
public import ConfigReader
internal import MediaEngine

/// All that a device is told by its configuration file.
public struct DeviceConfiguration: Sendable {
    /// Where and as whom to log in.
    public var account: AccountConfiguration
    /// What the device calls itself.
    public var device = DeviceIdentity()
    /// Which calls it answers, and how.
    public var answer = AnswerPolicy(manner: .answer(after: .zero), callLimit: .automatic)
    /// How invites go.
    public var invites = InviteConfiguration()
    /// Rooms that the device joins after each login.
    public var rooms: [String] = []
    /// What an answered call does.
    public var behaviour = BehaviourConfiguration()
    /// What kind of machine it runs on.
    public var profile = MachineProfile.desktop
    /// The sound card, for the behaviour `card`.
    public var audio = AudioConfiguration()
    /// Sockets, codec, playout.
    public var media = MediaConfiguration()
    /// Where programs on this machine act on the device; nil for nowhere.
    public var control: ControlConfiguration?

    /// The sound card that calls are to use; nil if none does.
    var sound: CallSound? {
        guard behaviour.source == .card else { return nil }
        // Above the media workers': the card waits for nobody.
        return audio.sound(realtimePriority: media.realtimePriority.map { min(99, $0 + 5) })
    }

    /// Makes a configuration of defaults around an account.
    public init(account: AccountConfiguration) { self.account = account }

    /// Reads and checks a configuration file.
    ///
    /// - Parameter fileChecks: Which of the files that it names are looked at.
    /// - Throws: ``ConfigError`` with every problem that the file has.
    public static func read(
        path: String, fileChecks: FileChecks = .inputs
    ) throws(ConfigError) -> DeviceConfiguration {
        let root = try ConfigDocument.read(path: path, fileChecks: fileChecks)
        var problems: [ConfigProblem] = []
        let configuration = DeviceConfiguration(root, &problems)
        guard problems.isEmpty else { throw ConfigError(problems) }
        return configuration
    }

    /// Reads a whole file's tree, noting every problem.
    init(_ root: ConfigSection, _ problems: inout [ConfigProblem]) {
        account = AccountConfiguration(server: AccountConfiguration.defaultServer)
        root.require(["account"], &problems)
        if let section = root.section("account", &problems) { account = AccountConfiguration(section, &problems) }
        if let section = root.section("device", &problems) { device = DeviceIdentity(section, &problems) }
        if let section = root.section("answer", &problems) { answer = AnswerPolicy(section, &problems) }
        if let section = root.section("behaviour", &problems) {
            behaviour = BehaviourConfiguration(section, &problems)
        }
        if let section = root.section("invites", &problems) { invites = InviteConfiguration(section, &problems) }
        rooms = root.list("rooms", &problems) ?? []
        profile = root.enumeration("profile", of: MachineProfile.self, &problems) ?? profile
        profile.apply(to: &audio)
        profile.apply(to: &media)
        if let section = root.section("audio", &problems) { audio.read(section, &problems) }
        if let section = root.section("media", &problems) { media.read(section, &problems) }
        control = root.section("control", &problems).flatMap { ControlConfiguration($0, &problems) }
        root.rejectUnknownKeys(
            known: [
                "account", "device", "answer", "audio", "behaviour", "control", "invites", "profile", "rooms", "media",
            ], &problems)
    }
}

/// What a device calls itself.
public struct DeviceIdentity: Sendable, Equatable {
    /// Unlike that of any other device of the user; nil makes one up at each start.
    public var id: String?
    /// For people.
    public var name = "Handset"
    /// A file with a record of every call, answered or missed (contract CALL-7); nil keeps none.
    public var callRecords: String?
    /// Where pushes go while the device is not connected, in the place of what the service was told before; nil leaves that
    /// as it was, and an empty list ends it (DEV-2).
    public var push: [PushTarget]?

    /// One way to push to the device.
    public struct PushTarget: Sendable, Equatable {
        /// Which push service: `apns`, `fcm` or any other name that the exchange's webhook knows.
        public var kind: String
        /// What that service knows the device by, up to 4,096 bytes.
        public var token: Secret

        /// Makes a target.
        public init(kind: String, token: Secret) {
            self.kind = kind
            self.token = token
        }

        init?(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
            section.require(["kind"], &problems)
            let kind = section.string("kind", &problems)
            let token = section.secret("token", required: true, &problems)
            section.rejectUnknownKeys(known: ["kind"] + ConfigSection.secretKeys("token"), &problems)
            guard let kind, let token else { return nil }
            self.init(kind: kind, token: token)
        }
    }

    /// Makes an identity without a fixed id.
    public init() {}

    init(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        id = section.string("id", &problems)
        name = section.string("name", &problems) ?? name
        callRecords = section.outputFile("call_records", &problems)
        let targets = section.sections("push", &problems)
        push = targets?.compactMap { PushTarget($0, &problems) }
        if let count = targets?.count, count > 8 {
            problems.append(section.problem("push", "has \(count) entries; 8 are allowed"))
        }
        section.rejectUnknownKeys(known: ["id", "name", "call_records", "push"], &problems)
    }
}

extension AnswerPolicy {
    private enum Mode: String, CaseIterable {
        case auto, ring, reject
    }

    init(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        let mode = section.enumeration("mode", of: Mode.self, &problems) ?? .auto
        let delay = section.milliseconds("delay_ms", in: 0...60_000, &problems) ?? .zero
        let limit = section.callLimit("max_calls", &problems) ?? .automatic
        let allowed = section.list("allow", &problems)
        let denied = section.list("deny", &problems)
        if allowed != nil, denied != nil {
            problems.append(section.problem("deny", "is given together with allow; keep one of them"))
        }
        let manner: Manner =
            switch mode {
            case .auto: .answer(after: delay)
            case .ring: .ring
            case .reject: .reject
            }
        let callers: Callers =
            if let allowed {
                .only(Set(allowed.map(UserID.init(rawValue:))))
            } else if let denied {
                .everybodyBut(Set(denied.map(UserID.init(rawValue:))))
            } else {
                .everybody
            }
        self.init(manner: manner, callLimit: limit, callers: callers)
        ringLimit = section.seconds("ring_seconds", in: 1...86_400, &problems) ?? ringLimit
        section.rejectUnknownKeys(
            known: ["mode", "delay_ms", "max_calls", "ring_seconds", "allow", "deny"], &problems)
    }
}

extension AnswerPolicy.CallLimit {
    /// Calls that one media worker has memory for.
    var mostPerWorker: Int {
        switch self {
        case .automatic: 256
        case .calls(let limit): max(256, limit)
        }
    }
}

extension ConfigSection {
    /// A number of calls, or `auto`.
    fileprivate func callLimit(_ key: String, _ problems: inout [ConfigProblem]) -> AnswerPolicy.CallLimit? {
        guard let text = string(key, &problems) else { return nil }
        if text == "auto" { return .automatic }
        guard let number = Int(text.filter { $0 != "_" }), 1...10_000 ~= number else {
            problems.append(problem(key, "must be auto, or a whole number from 1 to 10000, not \"\(text.prefix(40))\""))
            return nil
        }
        return .calls(number)
    }
}
