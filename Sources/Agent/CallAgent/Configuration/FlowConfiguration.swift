internal import BotWire
internal import CallFlow
internal import CallFlows
internal import ConfigReader
internal import Core

/// The section `behaviour.flow`.
enum FlowConfiguration {
    /// The keys of the section.
    struct Keys: ConfigKeys {
        let file = ConfigKey.path(
            "file", "the flow's first document; all others, and its sounds, are in the same folder and below"
        ).unset("`url`: a flow has one of the two")
        let url = FlowConfiguration.url(
            "url",
            "the server that answers each step of a call with a document ([flow-server.md](flow-server.md))"
        ).unset("`file`")
        let method = ConfigKey.choice("method", of: Webhook.Method.self, "how `url` and `fallback_url` are asked")
            .defaulting(to: .post)
        let fallbackURL = FlowConfiguration.url(
            "fallback_url", "asked once in a call if the server fails; without it the call ends then")
        let statusURL = FlowConfiguration.url(
            "status_url", "receives by POST that a call was initiated, answered and completed")
        let allowedHosts = ConfigKey<[String]>.list(
            "allowed_hosts", of: "hosts",
            "hosts besides those of the URLs here that documents may name: names, addresses, `*.example.org`. What is named in full "
                + "may be a private address. A flow with `file` names hosts in `Stream` alone"
        ) { text throws(ConfigValueFault) in
            guard FlowServerPlan.isHost(text) else {
                throw ConfigValueFault(
                    "must be a host's name or address, or *.example.org, without a port, not \"\(text.prefix(80))\"")
            }
            return text
        }.unset("none")
        let timeout = ConfigKey.milliseconds(
            "timeout_ms", in: 100...Int(FlowServerPlan.longestTimeout.milliseconds),
            "how long the server may take to answer, with redirections"
        ).defaulting(to: FlowServerPlan.usualTimeout)
        let secret = ConfigKey.secret(
            "secret", suggestsName: true,
            "signs requests to the server ([flow-server.md](flow-server.md#signed-requests)): at least \(FlowServerPlan.shortestSecret) bytes"
        )
        let trustRoots = ConfigKey.path(
            "trust_roots", readable: true, "PEM certificates to trust besides the system's")
        let say = ConfigKey.command(
            "say",
            "the command that speaks the texts of `Say`: it reads a text on standard input, and writes a WAV to standard output within 15 s"
        ).unset("no voice: a flow with `Say` is refused")
        let recordFolder = ConfigKey.outputFolder(
            "record_folder", "where `Record` writes its WAV files (mode 0600); made if it is missing"
        ).unset("nowhere: a flow with `Record` is refused")
    }

    private static func url(_ name: String, _ text: String) -> ConfigKey<WebAddress> {
        .parsed(name, "URL", in: "http://, https://", text, show: \.shown) { text throws(ConfigValueFault) in
            guard let address = WebAddress(text, WebAddress.Scheme.requests) else {
                throw ConfigValueFault(
                    "must be a URL that begins with http:// or https://, without a user and a password")
            }
            return address
        }
    }

    /// Judges who is called by the Dial of a behaviour's flow, if there is one.
    static func judgeCallees(
        of behaviour: BehaviourConfiguration, by account: AccountConfiguration, _ problems: inout [ConfigProblem]
    ) {
        guard case .file(let file)? = behaviour.source.flow?.source, let folder = try? FlowFolder(file: file) else {
            return
        }
        problems += FlowCheck.problems(ofCalleesIn: folder) { account.mayCall($0) != nil }
    }

    /// The plan of a section, whose flow is checked with all that it names if calls follow it.
    static func plan(
        _ section: KeyedSection<Keys>, isUsed: Bool, _ problems: inout [ConfigProblem]
    ) -> FlowPlan? {
        let file = section.value(\.file, &problems)
        let server = server(section, &problems)
        let voice = section.value(\.say, &problems)
        let recordFolder = section.value(\.recordFolder, &problems)
        guard var plan = file.map(FlowPlan.init(file:)) ?? server.map(FlowPlan.init(server:)) else { return nil }
        plan.voice = voice ?? []
        plan.recordFolder = recordFolder
        if case .file = plan.source {
            plan.streamHosts = section.value(\.allowedHosts, &problems) ?? []
            plan.trustRoots = section.certificates(\.trustRoots, &problems)
        }
        guard let file, !section.has(\.url) else { return plan }
        do throws(FlowUnusable) {
            let folder = try FlowFolder(file: file)
            guard isUsed, section.fileChecks != .none else { return plan }
            problems += FlowCheck.problems(
                of: folder, hasVoice: section.has(\.say), hasRecordings: section.has(\.recordFolder),
                streamHosts: plan.streamHosts)
        } catch {
            problems.append(section.problem(\.file, error.message))
        }
        return plan
    }

    /// The server of a flow; nil if it is one of files, or a problem is noted.
    private static func server(
        _ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]
    ) -> FlowServerPlan? {
        let before = problems.count
        let url = section.value(\.url, &problems)
        let method = section.value(\.method, &problems)
        let fallback = section.value(\.fallbackURL, &problems)
        let status = section.value(\.statusURL, &problems)
        let timeout = section.value(\.timeout, &problems)
        let secret = section.value(\.secret, &problems)
        if let secret, !FlowServerPlan.isSecret(secret) {
            problems.append(
                section.problem(
                    \.secret,
                    "must hold at least \(FlowServerPlan.shortestSecret) bytes, as text or as whsec_ and base64; "
                        + "`openssl rand -hex 32` makes some"))
        }
        if section.has(\.file), section.has(\.url) {
            problems.append(section.problem(\.url, "is given together with file; keep one of them"))
        } else if !section.has(\.file), !section.has(\.url) {
            problems.append(section.problem(\.file, "is required, or url for a flow that a server gives"))
        }
        guard section.has(\.url) else {
            rejectOfServer(in: section, &problems)
            return nil
        }
        let allowedHosts = section.value(\.allowedHosts, &problems)
        let trustRoots = section.certificates(\.trustRoots, &problems)
        guard let url, problems[before...].allSatisfy(\.isWarning) else { return nil }
        let plain = "callers and their keys cross the network in plain text; use https://"
        func isPlain(_ address: WebAddress?) -> Bool {
            address.map { !$0.scheme.isSecure && !BotConfiguration.isOwn($0.host) } ?? false
        }
        if isPlain(url) { problems.append(section.warning(\.url, plain)) }
        if isPlain(fallback) { problems.append(section.warning(\.fallbackURL, plain)) }
        if isPlain(status) { problems.append(section.warning(\.statusURL, plain)) }
        var plan = FlowServerPlan(first: Webhook(url, method))
        plan.fallback = fallback
        plan.status = status
        plan.allowedHosts = allowedHosts ?? []
        plan.timeout = timeout
        plan.secret = secret
        plan.trustRoots = trustRoots
        return plan
    }

    private static func rejectOfServer(in section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let reason = "is for a flow with url"
        section.rejectIdle(\.method, reason, &problems)
        section.rejectIdle(\.fallbackURL, reason, &problems)
        section.rejectIdle(\.statusURL, reason, &problems)
        section.rejectIdle(\.timeout, reason, &problems)
        section.rejectIdle(\.secret, reason, &problems)
    }
}
