internal import Realtime
internal import DomainNames
internal import HTTPTransport
internal import NIOCore
internal import NIOPosix
internal import NameLookup
internal import Core
internal import SIP
internal import SIPSignaling

/// Finds a server's addresses (RFC 3263): carries out what a ``ServerLocator`` asks for. It lives on one event loop; questions to
/// name servers block a thread of a pool, for ``limit`` at most each.
final class SIPResolver {
    /// From a question to its answer.
    private static let limit = Duration.seconds(4)

    private let loop: any EventLoop
    private let client: NameClient
    private var locator: ServerLocator
    private var tell: (([SIPTarget]) -> Void)?
    private let key: [UInt8]
    /// Names that are being looked up.
    private var lookups: [String: Lookup] = [:]

    private struct Lookup {
        var locator: ServerLocator
        let tell: ([SIPHost]) -> Void
    }

    init(_ configuration: SIPServiceConfiguration, key: [UInt8], on loop: any EventLoop) {
        self.loop = loop
        let server = configuration.server
        client = NameClient(servers: configuration.nameServers, limit: Self.limit)
        locator = ServerLocator(host: server.host, port: server.port, choice: server.transport, key: key)
        self.key = key
    }

    /// Finds the addresses of a host that speaks SIP over UDP. What is being looked up is not looked up a second time.
    func lookUp(_ name: String, _ tell: @escaping ([SIPHost]) -> Void) {
        guard lookups[name] == nil else { return }
        let locator = ServerLocator(host: name, port: nil, choice: .only(.udp), key: key + [9])
        lookups[name] = Lookup(locator: locator, tell: tell)
        feed(.locate, name)
    }

    private func feed(_ input: ServerLocator.Input, _ name: String) {
        var outbox: [ServerLocator.Output] = []
        lookups[name]?.locator.handle(input, at: now, into: &outbox)
        var questions: [DNSQuestion] = []
        for output in outbox {
            switch output {
            case .ask(let question): questions.append(question)
            case .located(let targets):
                lookups.removeValue(forKey: name)?.tell(targets.compactMap { SIPHost($0.address.host) })
            }
        }
        if !questions.isEmpty { ask(questions) { $0.feed($1, name) } }
    }

    private var now: Instant { Instant(NIODeadline.now()) }

    /// Finds the server. A call while it is being found takes the place of the one before.
    func locate(_ tell: @escaping ([SIPTarget]) -> Void) {
        self.tell = tell
        feed(.locate)
    }

    private func feed(_ input: ServerLocator.Input) {
        var outbox: [ServerLocator.Output] = []
        locator.handle(input, at: now, into: &outbox)
        var questions: [DNSQuestion] = []
        for output in outbox {
            switch output {
            case .ask(let question): questions.append(question)
            case .located(let targets):
                let tell = self.tell
                self.tell = nil
                tell?(targets)
            }
        }
        if !questions.isEmpty { ask(questions) { $0.feed($1) } }
    }

    private func ask(_ questions: [DNSQuestion], _ take: @escaping (SIPResolver, ServerLocator.Input) -> Void) {
        let client = client
        NIOThreadPool.singleton.runIfActive(eventLoop: loop) { Self.answers(to: questions, client) }
            .assumeIsolated()
            .whenComplete { [weak self] result in
                let answers = try? result.get()
                guard let self else { return }
                for question in questions { take(self, .answered(question, answers?[question] ?? .failed)) }
            }
    }

    /// Names that only the system's own lookup knows, such as those of the local link, are left to it.
    private static func answers(to questions: [DNSQuestion], _ client: NameClient) -> [DNSQuestion: DNSAnswer] {
        var answers = client.answers(to: questions)
        for (question, answer) in answers where question.kind == .addresses {
            // DNS has answered for all other names; asking again would take as long for each.
            guard case .failed = answer, NameClient.isLocal(question.name) else { continue }
            guard let address = SocketAddress.lookUp(host: question.name, port: 0) else { continue }
            answers[question] = .found(.addresses([address]), lifetime: .seconds(30))
        }
        return answers
    }
}
