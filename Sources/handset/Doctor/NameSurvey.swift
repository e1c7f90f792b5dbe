internal import BlockingWork
internal import Core
internal import DeviceDiagnosis
internal import DomainNames
internal import NameLookup
internal import Realtime
internal import SIPClient
internal import SIPSignaling

/// Looks names up as the device does. It blocks.
enum NameSurvey {
    /// What came of names, by name.
    typealias Answers = [String: Result]

    /// What came of one.
    enum Result: Sendable {
        case found([SocketAddress])
        case unknown
        case unanswered

        /// Its addresses, the best first.
        var addresses: [SocketAddress] { if case .found(let addresses) = self { addresses } else { [] } }

        /// The fact that a diagnosis is made of.
        func fact(of name: String) -> NameFacts {
            switch self {
            case .found(let addresses): NameFacts(name, .found(addresses.map(\.host)))
            case .unknown: NameFacts(name, .unknown)
            case .unanswered: NameFacts(name, .unanswered)
            }
        }
    }

    /// Looks up the addresses of hosts; one that is an address is its own answer.
    static func addresses(of hosts: Set<String>) -> Answers {
        let names = hosts.filter { SocketAddress(host: $0, port: 0) == nil }
        let questions = Dictionary(uniqueKeysWithValues: names.map { ($0, DNSQuestion($0, .addresses)) })
        let found = NameClient().answers(to: Array(Set(questions.values)))
        var answers: Answers = [:]
        for host in hosts {
            if let literal = SocketAddress(host: host, port: 0) {
                answers[host] = .found([literal])
            } else if let question = questions[host] {
                answers[host] = result(found[question] ?? .failed, of: host)
            }
        }
        return answers
    }

    private static func result(_ answer: DNSAnswer, of name: String) -> Result {
        if case .found(.addresses(let addresses), _) = answer, !addresses.isEmpty { return .found(addresses) }
        // The system may know names of the local link.
        if NameClient.isLocal(name), let address = SocketAddress.lookUp(host: name, port: 0) {
            return .found([address])
        }
        if case .failed = answer { return .unanswered }
        return .unknown
    }

    /// Finds a SIP server by its NAPTR, SRV and address records, as the device does (RFC 3263).
    ///
    /// - Returns: Its addresses and transports, the best first, and whether a name server did not answer.
    static func locate(_ configuration: SIPServiceConfiguration) -> (targets: [SIPTarget], isUnanswered: Bool) {
        let server = configuration.server
        let key = (0..<16).map { _ in UInt8.random(in: 0...255) }
        var locator = ServerLocator(host: server.host, port: server.port, choice: server.transport, key: key)
        let client = NameClient(servers: configuration.nameServers, limit: .seconds(4))
        var inputs: [ServerLocator.Input] = [.locate]
        var isUnanswered = false
        while !inputs.isEmpty {
            var outbox: [ServerLocator.Output] = []
            for input in inputs { locator.handle(input, at: .zero, into: &outbox) }
            var questions: [DNSQuestion] = []
            for output in outbox {
                switch output {
                case .located(let targets): return (targets, isUnanswered)
                case .ask(let question): questions.append(question)
                }
            }
            inputs = answers(to: questions, client).map { question, answer in
                if case .failed = answer { isUnanswered = true }
                return .answered(question, answer)
            }
        }
        return ([], isUnanswered)
    }

    private static func answers(to questions: [DNSQuestion], _ client: NameClient) -> [DNSQuestion: DNSAnswer] {
        guard !questions.isEmpty else { return [:] }
        var answers = client.answers(to: questions)
        for (question, answer) in answers where question.kind == .addresses && NameClient.isLocal(question.name) {
            if case .found = answer { continue }
            guard let address = SocketAddress.lookUp(host: question.name, port: 0) else { continue }
            answers[question] = .found(.addresses([address]), lifetime: .seconds(30))
        }
        return answers
    }
}
