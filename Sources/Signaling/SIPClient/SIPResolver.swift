internal import Datagrams
internal import DomainNames
internal import NIOCore
internal import NIOPosix
internal import NameLookup
internal import NetworkAddress
internal import SIP
internal import SIPSignaling
internal import Timekeeping

/// Finds a server's addresses (RFC 3263): carries out what a ``ServerLocator`` asks for. It lives on one event loop; questions to
/// name servers block a thread of a pool, for ``limit`` at most each.
final class SIPResolver {
    /// From a question to its answer.
    private static let limit = Duration.seconds(4)

    private let loop: any EventLoop
    private let client: NameClient
    private var locator: ServerLocator
    private var tell: (([SIPTarget]) -> Void)?

    init(_ configuration: SIPServiceConfiguration, key: [UInt8], on loop: any EventLoop) {
        self.loop = loop
        let server = configuration.server
        client = NameClient(servers: configuration.nameServers, limit: Self.limit)
        locator = ServerLocator(host: server.host, port: server.port, choice: server.transport, key: key)
    }

    /// Finds the server. A call while it is being found takes the place of the one before.
    func locate(_ tell: @escaping ([SIPTarget]) -> Void) {
        self.tell = tell
        feed(.locate)
    }

    private func feed(_ input: ServerLocator.Input) {
        var outbox: [ServerLocator.Output] = []
        let now = Instant(nanoseconds: Int64(clamping: NIODeadline.now().uptimeNanoseconds))
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
        if !questions.isEmpty { ask(questions) }
    }

    private func ask(_ questions: [DNSQuestion]) {
        let client = client
        NIOThreadPool.singleton.runIfActive(eventLoop: loop) { Self.answers(to: questions, client) }
            .assumeIsolated()
            .whenComplete { [weak self] result in
                let answers = try? result.get()
                for question in questions { self?.feed(.answered(question, answers?[question] ?? .failed)) }
            }
    }

    /// Names that only the system's own lookup knows, such as those of the local link, are left to it.
    private static func answers(to questions: [DNSQuestion], _ client: NameClient) -> [DNSQuestion: DNSAnswer] {
        var answers = client.answers(to: questions)
        for (question, answer) in answers where question.kind == .addresses {
            // DNS has answered for all other names; asking again would take as long for each.
            guard case .failed = answer, question.name.hasSuffix(".local") || !question.name.contains(".") else {
                continue
            }
            guard let address = SocketAddress.lookUp(host: question.name, port: 0) else { continue }
            answers[question] = .found(.addresses([address]), lifetime: .seconds(30))
        }
        return answers
    }
}
