public import CallAgent
public import ConfigReader
public import ControlPlane
internal import CallControl
public import Monitoring

/// The contents of a trunk's configuration file.
public struct TrunkConfiguration: Sendable {
    /// The account at the exchange, as of a device.
    public var exchange: DeviceConfiguration
    /// The account at the telephone network's server, as of a device.
    public var network: DeviceConfiguration
    /// Where calls go.
    public var routes = TrunkRoutes()
    /// Calls at a time.
    public var callLimit = Self.usualLimit
    /// The longest that a call may last.
    public var longestCall = Self.usualLength
    /// Where it shows metrics and health; nil for nowhere.
    public private(set) var monitoring: MonitoringConfiguration?
    /// Where an operator acts on it while it runs; nil for nowhere.
    public private(set) var control: ControlSection?
    /// Where it sends traces of its calls; nil for nowhere.
    public private(set) var traces: TraceConfiguration?
    /// Warnings for the owner; the configuration can be used nevertheless.
    public private(set) var warnings: [ConfigProblem] = []

    private static let usualLimit = 10
    private static let usualLength = Duration.seconds(4 * 3_600)

    /// The keys of such a file.
    public static var keys: [ConfigKeyEntry] { Keys.entries }

    /// The keys of a file's root.
    struct Keys: ConfigKeys {
        let exchange = ConfigKey.path(
            "exchange", readable: true,
            "a configuration as of `handset run`, with the account at the exchange that `trunks.user` there names"
        ).required
        let network = ConfigKey.path(
            "network", readable: true, "a configuration as of `handset run`, with the account at the SIP server"
        ).required
        let incoming = ConfigKey.sections(
            "incoming", Incoming.self, "the users that the network may call"
        ).unset("none")
        let outgoing = ConfigKey.sections("outgoing", Outgoing.self, "how numbers are dialled in the network")
            .unset("as they are")
        let callLimit = ConfigKey.integer("max_calls", in: 1...1_000, "calls at a time, in both directions").defaulting(
            to: usualLimit)
        let longestCall = ConfigKey.seconds(
            "longest_call_s", in: 10...86_400, "after which a call is ended"
        ).defaulting(to: usualLength)
        let monitoring = ConfigKey.section(
            "monitoring", MonitoringConfiguration.Keys.self,
            "where it shows metrics and health ([monitoring.md](monitoring.md)); without this section, nowhere")
        let traces = ConfigKey.section(
            "traces", TraceConfiguration.Keys.self,
            "where it sends traces of calls ([tracing.md](tracing.md)); without this section, nowhere")
        let control = ConfigKey.section(
            "control", ControlSection.Keys.self,
            "where an operator acts on it while it runs ([trunk-control.md](trunk-control.md)); without this section, nowhere"
        )
    }

    /// The keys of one of `incoming`.
    struct Incoming: ConfigKeys {
        let number = ConfigKey.pattern("number", "the number that is dialled in the network, as a pattern").required
        let user = ConfigKey<UserID>.parsed("user", "name", "the user that is called at the exchange") {
            text throws(ConfigValueFault) in
            do throws(IdentifierFault) { return try UserID(text) } catch { throw ConfigValueFault("\(error)") }
        }.required
    }

    /// The keys of one of `outgoing`.
    struct Outgoing: ConfigKeys {
        let number = ConfigKey.pattern("number", "the number that a user of the exchange has dialled, as a pattern")
            .required
        let strip = ConfigKey.integer("strip", in: 0...16, "characters removed at the beginning").defaulting(
            to: 0)
        let prepend = ConfigKey<String>.parsed("prepend", "digits", "what replaces them", show: { "\($0)" }) {
            text throws(ConfigValueFault) in
            if text == "+" || TelephoneNumber(text) != nil { return text }
            throw ConfigValueFault("must be digits, or a + and digits, such as 0 or +49")
        }
    }

    /// Reads and checks a configuration file and the two that it names.
    ///
    /// - Throws: ``ConfigError`` with every problem that the files have.
    public static func read(
        path: String, fileChecks: FileChecks = .inputs
    ) throws(ConfigError) -> TrunkConfiguration {
        let (read, warnings) = try parse(path, fileChecks)
        guard var configuration = read else {
            throw ConfigError([ConfigProblem(file: path, message: "names two files, without which it cannot be used")])
        }
        configuration.warnings = warnings
        return configuration
    }

    /// Reads only the section `control` of a file, so that a client of the trunk needs none of its secrets.
    ///
    /// - Returns: Nil if there is no such section.
    /// - Throws: ``ConfigError`` with the problems of the section.
    public static func control(inFile path: String) throws(ConfigError) -> ControlSection? {
        try ControlSection.read(path: path, \Keys.control, at: .trunk)
    }

    /// Checks a configuration file, and the two that it names unless `fileChecks` leaves files out.
    ///
    /// - Returns: Warnings.
    /// - Throws: ``ConfigError`` with every problem that the files have.
    public static func check(path: String, fileChecks: FileChecks) throws(ConfigError) -> [ConfigProblem] {
        try parse(path, fileChecks).warnings
    }

    /// - Returns: Nil for the configuration if its two files were left out.
    private static func parse(
        _ path: String, _ fileChecks: FileChecks
    ) throws(ConfigError) -> (configuration: TrunkConfiguration?, warnings: [ConfigProblem]) {
        let document = try ConfigDocument.read(path: path, fileChecks: fileChecks)
        var problems: [ConfigProblem] = []
        let section = KeyedSection(document, Keys.self, &problems)
        let exchange = device(\.exchange, isNetwork: false, section, &problems)
        let network = device(\.network, isNetwork: true, section, &problems)
        let routes = Self.routes(section, &problems)
        let callLimit = section.value(\.callLimit, &problems)
        let longestCall = section.value(\.longestCall, &problems)
        let monitoring = section.value(\.monitoring, &problems).flatMap { MonitoringConfiguration($0, &problems) }
        let traces = section.value(\.traces, &problems).flatMap { TraceConfiguration($0, &problems) }
        let control = section.value(\.control, &problems).flatMap { ControlSection($0, at: .trunk, &problems) }
        let warnings = try problems.verdict()
        guard let exchange, let network else { return (nil, warnings) }
        var configuration = TrunkConfiguration(
            exchange: carrying(exchange, longestCall), network: carrying(network, longestCall))
        configuration.network.account.passOn()
        configuration.routes = routes
        configuration.callLimit = callLimit
        configuration.longestCall = longestCall
        configuration.monitoring = monitoring
        configuration.traces = traces
        configuration.control = control
        return (configuration, warnings)
    }

    /// A device that carries calls of others: it decides nothing about them by itself.
    private static func carrying(_ device: DeviceConfiguration, _ longestCall: Duration) -> DeviceConfiguration {
        var device = device
        device.behaviour.source = .silence
        device.behaviour.maximumDuration = longestCall
        device.answer.manner = .ring
        device.answer.isUnattended = true
        // A peer of the trunk cannot make it place calls: that would be at others' expense.
        device.answer.transfers = .refuse
        return device
    }

    /// Makes a configuration without routes.
    private init(exchange: DeviceConfiguration, network: DeviceConfiguration) {
        self.exchange = exchange
        self.network = network
    }

    private static func device(
        _ key: KeyPath<Keys, ConfigKey<String>>, isNetwork: Bool, _ section: KeyedSection<Keys>,
        _ problems: inout [ConfigProblem]
    ) -> DeviceConfiguration? {
        // Of another machine's file nothing is known here.
        guard let path = section.value(key, &problems), section.fileChecks != .none else { return nil }
        do throws(ConfigError) {
            let document = try ConfigDocument.read(path: path, fileChecks: section.fileChecks)
            let device = try AccountsConfiguration.read(document).account(nil, in: document)
            problems += device.warnings
            for idle in ["behaviour", "rooms", "audio", "control", "monitoring", "traces"]
            where document.keys.contains(idle) {
                problems.append(
                    ConfigProblem(
                        file: path, line: document.line, key: idle,
                        message: idle == "monitoring" || idle == "traces"
                            ? "is for `handset run`; move it to the trunk's own file"
                            : "is for `handset run`; a trunk does not use it, so remove it"))
            }
            if device.account.callees != nil {
                problems.append(
                    ConfigProblem(
                        file: path, line: document.line, key: "account.callees",
                        message: "is for devices; a trunk's numbers and callers say who may be called, so remove it"))
            }
            if (device.account.sip != nil) != isNetwork {
                problems.append(
                    section.problem(
                        key,
                        isNetwork
                            ? "\"\(path)\" has no account of kind: sip"
                            : "\"\(path)\" has an account of kind: sip, and not at an exchange"))
            }
            return device
        } catch {
            problems += error.problems
            return nil
        }
    }

    private static func routes(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) -> TrunkRoutes {
        var routes = TrunkRoutes()
        for entry in section.value(\.incoming, &problems) ?? [] {
            let (number, user) = (entry.value(\.number, &problems), entry.value(\.user, &problems))
            guard let number, let user else { continue }
            if !routes.users.add(number, user) {
                problems.append(entry.problem(\.number, "\"\(number)\" is already in the list; a number has one route"))
            }
        }
        for entry in section.value(\.outgoing, &problems) ?? [] {
            var rewriting = TrunkRoutes.Rewriting()
            rewriting.strip = entry.value(\.strip, &problems)
            rewriting.prepend = entry.value(\.prepend, &problems) ?? ""
            guard let number = entry.value(\.number, &problems) else { continue }
            if !routes.rewritings.add(number, rewriting) {
                problems.append(
                    entry.problem(\.number, "\"\(number)\" is already in the list; a number is dialled one way"))
            }
        }
        return routes
    }
}

extension ConfigKey<NumberPattern> {
    /// A pattern of numbers.
    fileprivate static func pattern(_ name: String, _ text: String) -> Self {
        .parsed(name, "pattern", text, show: \.text) { text throws(ConfigValueFault) in
            if let pattern = NumberPattern(text) { return pattern }
            throw ConfigValueFault(
                "must be a pattern of numbers, such as 2??, +4930* or 200: an optional +, then digits and ? for any digit, and a "
                    + "* at the end at most for one or more")
        }
    }
}

/// Where calls go that come to a trunk. What is not listed goes nowhere.
public struct TrunkRoutes: Sendable {
    /// How a number is dialled in the network.
    public struct Rewriting: Hashable, Sendable {
        /// Characters that are left out at the beginning.
        public var strip = 0
        /// What is put there.
        public var prepend = ""

        /// A number as it is.
        public init() {}
    }

    /// Users of the exchange, by the numbers at which the network calls them.
    public var users = NumberTable<UserID>()
    /// How numbers are dialled, if not as they are.
    public var rewritings = NumberTable<Rewriting>()

    /// Routes no number to any user.
    public init() {}

    /// What is called in the network for a number that a user of the exchange has dialled; nil if it is no number.
    public func networkName(of dialled: String) -> UserID? {
        guard let number = TelephoneNumber(dialled) else { return nil }
        let rewriting = rewritings[number] ?? Rewriting()
        let dialled = number.rewritten(without: rewriting.strip, prepending: rewriting.prepend)
        return dialled.flatMap { try? UserID($0.text) }
    }

    /// The user of the exchange to call for a number that was dialled in the network.
    public func user(of dialled: String) -> UserID? { TelephoneNumber(dialled).flatMap { users[$0] } }
}
