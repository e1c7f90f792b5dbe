internal import CallAgent
internal import Core
internal import DeviceDiagnosis
internal import Files
internal import Glibc
internal import HTTPTransport
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Realtime
internal import SIP
internal import SIPSignaling
internal import TLS

/// A server of an account: how it is reached, and what it is asked.
struct ProbedServer: Sendable {
    /// How people name it.
    let url: String
    /// Its name, or its address without brackets.
    let host: String
    /// For TLS and HTTP, by its name; nil for a server over UDP.
    let endpoint: HTTPEndpoint?
    /// Whether it answers HTTP requests.
    let speaksHTTP: Bool
    /// Where it is, as far as that is known.
    var addresses: [Core.SocketAddress] = []

    /// The servers of an account at an exchange; URLs that lead to one server count once.
    static func ofExchange(_ account: AccountConfiguration) -> [ProbedServer] {
        var servers: [ProbedServer] = []
        for text in [account.authURL, account.identityURL, account.eventsURL] {
            guard let endpoint = try? HTTPEndpoint(text) else { continue }
            let url = "\(endpoint.isSecure ? "https" : "http")://\(endpoint.authority)"
            if servers.contains(where: { $0.url == url }) { continue }
            servers.append(ProbedServer(url: url, host: endpoint.host, endpoint: endpoint, speaksHTTP: true))
        }
        return servers
    }
}

/// Connects to servers, and finds out what they answer. Sends no credential.
struct ServerProbe: Sendable {
    let trust: TLSTrust

    /// Looks at all servers at a time.
    func look(at servers: [ProbedServer]) async -> [ServerFacts] {
        await withTaskGroup(of: (Int, ServerFacts).self) { group in
            for (index, server) in servers.enumerated() {
                group.addTask { (index, await look(at: server)) }
            }
            var facts: [Int: ServerFacts] = [:]
            for await (index, fact) in group { facts[index] = fact }
            return servers.indices.compactMap { facts[$0] }
        }
    }

    private func look(at server: ProbedServer) async -> ServerFacts {
        var facts = ServerFacts(url: server.url, isSecure: server.endpoint?.isSecure ?? false)
        guard let endpoint = server.endpoint else {
            facts.attempts = await SIPProbe.ask(server.host, at: server.addresses)
            return facts
        }
        facts.attempts = await Self.connect(to: server.addresses)
        guard facts.isReached else { return facts }
        var failure: ServerFacts.Answer?
        if endpoint.isSecure {
            let trial = await handshake(endpoint)
            failure = trial.failure
            if case .silent? = failure {
            } else {
                facts.certificate = await Self.certificate(of: endpoint, isTrusted: trial.isTrusted)
            }
        }
        if let failure {
            facts.answer = failure
        } else {
            facts.answer = server.speaksHTTP ? await request(endpoint) : .notTried("no request was sent")
        }
        return facts
    }

    // MARK: - Connections

    private static func connect(to addresses: [Core.SocketAddress]) async -> [ServerFacts.Attempt] {
        await withTaskGroup(of: (Int, ServerFacts.Attempt.Result).self) { group in
            for (index, address) in addresses.enumerated() {
                group.addTask { (index, await connect(to: address)) }
            }
            var results: [Int: ServerFacts.Attempt.Result] = [:]
            for await (index, result) in group { results[index] = result }
            return addresses.enumerated().compactMap { index, address in
                results[index].map { ServerFacts.Attempt("\(address)", $0) }
            }
        }
    }

    private static func connect(to address: Core.SocketAddress) async -> ServerFacts.Attempt.Result {
        let start = MonotonicClock.now
        do {
            let target = try NIOCore.SocketAddress(ipAddress: address.host, port: Int(address.port))
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connectTimeout(.seconds(Int64(DoctorBounds.connection)))
                .connect(to: target).get()
            try? await channel.close()
            return .open(milliseconds: Int(start.duration(to: MonotonicClock.now).milliseconds))
        } catch ChannelError.connectTimeout {
            return .silent(seconds: DoctorBounds.connection)
        } catch let error as IOError {
            if error.errnoCode == ECONNREFUSED { return .refused }
            return .unreachable("\(SystemError(error.errnoCode))")
        } catch {
            return .unreachable("\(error)")
        }
    }

    // MARK: - TLS

    private func handshake(_ endpoint: HTTPEndpoint) async -> (isTrusted: Bool?, failure: ServerFacts.Answer?) {
        do {
            try await TrialHandshake.run(to: endpoint, trusting: trust, withinSeconds: Int64(DoctorBounds.answer))
            return (true, nil)
        } catch HTTPFetch.Failure.tooLate {
            return (nil, .silent(seconds: DoctorBounds.answer))
        } catch {
            let failure = TransportFailure(error, to: endpoint)
            return (failure.isUntrusted ? false : nil, .failed(failure.cause))
        }
    }

    private static func certificate(of endpoint: HTTPEndpoint, isTrusted: Bool?) async -> CertificateFacts? {
        let chain = await DoctorBounds.within(DoctorBounds.answer) {
            (try? await PresentedChain.fetch(from: endpoint)) ?? []
        }
        guard let shown = chain?.first else { return nil }
        return CertificateFacts(
            names: shown.names.compactMap(name), issuer: shown.issuer ?? "an authority without a name",
            notBefore: WallClock(unixMilliseconds: Int64(shown.notBefore) * 1_000),
            notAfter: WallClock(unixMilliseconds: Int64(shown.notAfter) * 1_000),
            isForServer: shown.isFor(endpoint.host), isTrusted: isTrusted)
    }

    private static func name(_ name: TLSCertificate.Name) -> String? {
        switch name {
        case .dns(let name): name
        case .address(let bytes): Core.SocketAddress(addressBytes: bytes, port: 0)?.host
        case .uri(let uri): uri
        }
    }

    // MARK: - HTTP

    private func request(_ endpoint: HTTPEndpoint) async -> ServerFacts.Answer {
        let bounds = HTTPFetch.Bounds(
            bodyBytes: 65_536, time: .seconds(Int64(DoctorBounds.answer)), acceptsPart: true)
        let client = HTTPClient(
            trust: trust, within: bounds, keeping: HTTPClient.Keeping(connections: 0),
            on: MultiThreadedEventLoopGroup.singleton.next())
        let answer: ServerFacts.Answer
        do {
            let reply = try await client.send(HTTPFetch.Request(.GET, endpoint, target: endpoint.target))
            let date = reply.headers.first(name: "Date").flatMap { RetryAfter.date($0) }
            answer = .answered(status: reply.status, date: date, at: MonotonicClock.wallTime)
        } catch HTTPFetch.Failure.tooLate {
            answer = .silent(seconds: DoctorBounds.answer)
        } catch {
            answer = .failed(TransportFailure(error, to: endpoint).cause)
        }
        await client.shutDown()
        return answer
    }
}

extension ProbedServer {
    /// The addresses of a SIP server, those of one transport and port together.
    static func ofSIP(_ targets: [SIPTarget], host: String) -> [ProbedServer] {
        var servers: [ProbedServer] = []
        for target in targets {
            let name = host.contains(":") ? "[\(host)]" : host
            let url = "\(target.transport.rawValue) \(name):\(target.address.port)"
            if let index = servers.firstIndex(where: { $0.url == url }) {
                servers[index].addresses.append(target.address)
                continue
            }
            let scheme: String? =
                switch target.transport {
                case .udp: nil
                case .tcp, .ws: "http"
                case .tls, .wss: "https"
                }
            let endpoint = scheme.flatMap { try? HTTPEndpoint("\($0)://\(name):\(target.address.port)") }
            servers.append(
                ProbedServer(
                    url: url, host: host, endpoint: endpoint, speaksHTTP: false, addresses: [target.address]))
        }
        return servers
    }
}
