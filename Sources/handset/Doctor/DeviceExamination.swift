internal import BlockingWork
internal import CallAgent
internal import CallControl
internal import ConfigReader
internal import ControlPlane
internal import ControlWire
internal import Core
internal import DeviceControl
internal import DeviceDiagnosis
internal import HTTPTransport
internal import Realtime
internal import SIPClient
internal import SIPSignaling

/// Gathers the facts about a device that `handset doctor` judges, each within its bound, and changes nothing that a running device would
/// notice.
struct DeviceExamination: Sendable {
    /// The configuration file.
    let path: String
    /// Which of several accounts in it.
    let account: String?
    /// Whether to place a call of the device to itself.
    let placesCall: Bool

    /// - Throws: ``ConfigError`` if the file is another command's, or has no such account.
    func gather() async throws(ConfigError) -> DeviceFacts {
        let result = CheckResult(path, ConfigurationCheck(kinds: ConfigurationKind.all))
        if result.command != nil { try ConfigurationCheck.expect("run", path: path) }
        let problems = result.problems
        let now = MonotonicClock.wallTime
        var facts = DeviceFacts(
            ConfigurationFacts(
                path: path, errors: problems.filter { !$0.isWarning }.map(\.description),
                warnings: problems.filter(\.isWarning).map(\.description)), at: now)
        facts.isTimePlausible = ClockPlausibility.canBeRight(now)
        let configuration: DeviceConfiguration
        do throws(ConfigError) {
            configuration = try DeviceConfiguration.read(path: path, fileChecks: .inputs, account: account)
        } catch {
            if result.isGood { throw error }
            return facts
        }
        await gather(configuration, into: &facts)
        return facts
    }

    private func gather(_ configuration: DeviceConfiguration, into facts: inout DeviceFacts) async {
        let running = await Self.running(configuration, inFile: path)
        facts.device = .facts(running)
        await gatherNetwork(configuration, isRunning: running.isRunning, into: &facts)
        await Self.gatherMachine(configuration, isRunning: running.isRunning, into: &facts)
        await gatherCall(configuration, isRunning: running.isRunning, into: &facts)
    }

    // MARK: - A device that runs

    private static func running(_ configuration: DeviceConfiguration, inFile path: String) async -> RunningFacts {
        if let control = configuration.control {
            let socket = ControlSocketPath.reachingHTTP(control)
            let line = await DoctorBounds.within(DoctorBounds.device) { await status(at: socket) }
            if let line, let line { return RunningFacts(isRunning: true, evidence: ["\(socket): \(line)"]) }
        }
        let locks = DeviceLocks.look(configuration, inFile: path)
        if let held = locks.first(where: \.isHeld) {
            return RunningFacts(isRunning: true, evidence: ["a process has locked \(held.file)"])
        }
        let evidence = locks.isEmpty ? "nothing shows that a device of this configuration runs" : "no lock is held"
        return RunningFacts(isRunning: false, evidence: [evidence])
    }

    private static func status(at socket: String) async -> String? {
        let client = DeviceClient(ControlHTTPClient(path: socket, owner: .device))
        guard let (reply, _) = try? await client.ask(ControlRequest(.status)) else { return nil }
        guard let status = reply.status else { return "a device runs, and gives no status" }
        return "a device runs (PID \(status.pid)), \(status.connection) at \(status.server)"
    }

    // MARK: - The network

    private func gatherNetwork(
        _ configuration: DeviceConfiguration, isRunning: Bool, into facts: inout DeviceFacts
    ) async {
        var names: NameSurvey.Answers = [:]
        let servers = await lookUp(configuration, &names, into: &facts)
        let reached = await ServerProbe(trust: Self.trust(configuration.account.trustRoots)).look(at: servers)
        facts.servers = .facts(reached)
        let (login, named) = await Self.login(configuration, reached, isRunning: isRunning)
        facts.login = login
        let list = configuration.media.iceServers + named
        await Self.addNames(of: list, to: &names)
        facts.nat = await Self.stun(list, names)
        let (asked, others) = RelayProbe.servers(of: list, configured: configuration.media.iceServers.count, names)
        let relays = RelayProbe(trust: Self.trust(configuration.media.relayTrustRoots))
        facts.relays = .facts(await relays.ask(asked) + others)
    }

    /// The trust in a file's certificates; that of the system if the file cannot be read, which the configuration's problems say.
    private static func trust(_ file: String?) -> TLSTrust {
        do throws(TLSTrust.Unreadable) { return try TLSTrust(trustRootFile: file) } catch { return .system }
    }

    /// Looks up the names of all servers.
    private func lookUp(
        _ configuration: DeviceConfiguration, _ names: inout NameSurvey.Answers, into facts: inout DeviceFacts
    ) async -> [ProbedServer] {
        var servers = configuration.account.sip == nil ? ProbedServer.ofExchange(configuration.account) : []
        let hosts = Set(servers.compactMap { $0.endpoint?.host }).union(
            STUNProbe.hosts(of: configuration.media.iceServers))
        let sip = configuration.account.sip
        let found = await DoctorBounds.within(DoctorBounds.names) {
            await BlockingThreads.names.run { (NameSurvey.addresses(of: hosts), sip.map { NameSurvey.locate($0) }) }
        }
        guard let (answers, located) = found else {
            facts.names = .facts(hosts.sorted().map { NameFacts($0, .unanswered) })
            return servers
        }
        names = answers
        var list = hosts.sorted().filter { SocketAddress(host: $0, port: 0) == nil }
            .compactMap { host in answers[host]?.fact(of: host) }
        for index in servers.indices {
            guard let endpoint = servers[index].endpoint else { continue }
            servers[index].addresses = (answers[endpoint.host]?.addresses ?? [])
                .map { $0.withPort(UInt16(clamping: endpoint.port)) }
        }
        if let sip, let located {
            let host = sip.server.host
            if SocketAddress(host: host, port: 0) == nil {
                let result: NameFacts.Result =
                    located.targets.isEmpty
                    ? (located.isUnanswered ? .unanswered : .unknown) : .found(located.targets.map(\.description))
                list.append(NameFacts(host, result))
            }
            servers += ProbedServer.ofSIP(located.targets, host: host)
        }
        facts.names = .facts(list)
        return servers
    }

    private static func login(
        _ configuration: DeviceConfiguration, _ servers: [ServerFacts], isRunning: Bool
    ) async -> (Gathered<LoginFacts>, [CallControl.ICEServer]) {
        let isSIP = configuration.account.sip != nil
        let isUsable = isSIP ? servers.contains(where: isOpen) : servers.allSatisfy(isOpen)
        if let objection = LoginProbe.objection(to: configuration, isRunning: isRunning) {
            return (.skipped(objection), [])
        }
        guard isUsable, !servers.isEmpty else {
            return (.skipped("not tried: a server does not answer as it should"), [])
        }
        let result = await DoctorBounds.within(DoctorBounds.login) {
            await LoginProbe(configuration: configuration).run()
        }
        guard let result else {
            let seconds = DoctorBounds.login
            return (.facts(isSIP ? .unanswered(seconds: seconds) : .late(seconds: seconds)), [])
        }
        return (.facts(result.login), result.servers)
    }

    /// Whether a server does what a login needs: an exchange answers, and a SIP server takes a connection or answers an OPTIONS.
    private static func isOpen(_ server: ServerFacts) -> Bool {
        switch server.answer {
        case .answered?: true
        case .notTried?, nil: server.isReached
        case .silent?, .failed?: false
        }
    }

    /// Looks up the names of servers that only the service gave.
    private static func addNames(of list: [CallControl.ICEServer], to names: inout NameSurvey.Answers) async {
        let missing = STUNProbe.hosts(of: list).filter { names[$0] == nil }
        guard !missing.isEmpty else { return }
        let found = await DoctorBounds.within(DoctorBounds.stunNames) {
            await BlockingThreads.names.run { NameSurvey.addresses(of: missing) }
        }
        names.merge(found ?? [:]) { $1 }
    }

    /// Asks the servers that the configuration and the service name.
    private static func stun(
        _ list: [CallControl.ICEServer], _ names: NameSurvey.Answers
    ) async -> Gathered<[STUNFacts]> {
        let (asked, others) = STUNProbe.servers(of: list, names)
        return .facts(await STUNProbe.ask(asked) + others)
    }

    // MARK: - The machine

    private static func gatherMachine(
        _ configuration: DeviceConfiguration, isRunning: Bool, into facts: inout DeviceFacts
    ) async {
        let probe = MachineProbe(configuration: configuration)
        facts.ports = isRunning ? .skipped("not tried: the device that runs has them") : .facts(probe.ports())
        facts.card = await card(configuration, isRunning: isRunning)
        facts.rights = .facts(probe.rights())
        facts.folders = .facts(probe.folders())
        facts.descriptors = .facts(probe.descriptors())
    }

    private static func card(_ configuration: DeviceConfiguration, isRunning: Bool) async -> Gathered<SoundCardFacts> {
        guard configuration.usesCard else { return .skipped("calls use no sound card") }
        if isRunning { return .skipped("not tried: the device that runs has it; `handset control status` shows it") }
        let facts = await DoctorBounds.within(DoctorBounds.card) {
            await BlockingThreads.files.run { MachineProbe(configuration: configuration).card() }
        }
        var late = SoundCardFacts("the card")
        late.failure = "no result in \(DoctorBounds.card) s"
        return .facts(facts ?? late)
    }

    // MARK: - A call

    private func gatherCall(
        _ configuration: DeviceConfiguration, isRunning: Bool, into facts: inout DeviceFacts
    ) async {
        guard placesCall else {
            facts.call = .skipped("not tried: every device of the account would ring, too; --call places one")
            return
        }
        guard configuration.account.sip == nil else {
            facts.call = .skipped("not tried at a SIP server: it needs a registration of its own")
            return
        }
        guard case .facts(.granted) = facts.login else {
            facts.call = .skipped("not tried without a login")
            return
        }
        let ending = EndRequest()
        let result = await DoctorBounds.within(DoctorBounds.call) { () -> OwnCallFacts in
            do {
                let trial = SetupTrial(configuration: configuration, ending: ending, logger: .silent)
                let time = try await trial.callItself(waitsForAccount: false)
                return .flowed(milliseconds: Int(time.milliseconds))
            } catch {
                return .failed("\(error)")
            }
        }
        facts.call = .facts(result ?? .failed("no result in \(DoctorBounds.call) s"))
    }
}
