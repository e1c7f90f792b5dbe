// NameLookup: asks name servers through c-ares, and the system's list of hosts. It blocks, so it runs on threads that may.

internal import CAres
public import DomainNames
internal import Glibc
public import Core

/// Asks the domain name system.
public struct NameClient: Sendable {
    /// Addresses of one name that are taken at most.
    public static let mostAddresses = 16
    /// Maximum number of questions of one call.
    public static let mostQuestions = 64

    /// Whether the system's own lookup may know a name that name servers do not: names of the local link, and those without a dot.
    public static func isLocal(_ name: String) -> Bool { name.hasSuffix(".local") || !name.contains(".") }

    private let servers: [SocketAddress]
    private let milliseconds: Int64

    /// Makes a client.
    ///
    /// - Parameters:
    ///   - servers: Name servers; those of the system (`/etc/resolv.conf`) if there are none.
    ///   - limit: From a question to its answer at most.
    public init(servers: [SocketAddress] = [], limit: Duration = .seconds(5)) {
        self.servers = servers
        milliseconds = max(1, limit.components.seconds * 1_000 + limit.components.attoseconds / 1_000_000_000_000_000)
    }

    /// Asks all questions at once. Blocks for ``init(servers:limit:)``'s limit at most; not for event loops.
    ///
    /// Addresses come from `/etc/hosts` and name servers, in the order of RFC 6724.
    ///
    /// - Returns: An answer to each question.
    public func answers(to questions: [DNSQuestion]) -> [DNSQuestion: DNSAnswer] {
        var answers = Dictionary(uniqueKeysWithValues: Set(questions).map { ($0, DNSAnswer.failed) })
        guard let channel = AresChannel(servers, milliseconds) else { return answers }
        let inquiries = Set(questions.prefix(Self.mostQuestions)).map(AresInquiry.init)
        for inquiry in inquiries { inquiry.ask(channel) }
        channel.run { inquiries.contains { $0.answer == nil } }
        // Ends the queries in progress, so that no callback comes later.
        channel.cancel()
        for inquiry in inquiries { answers[inquiry.question] = inquiry.answer ?? .failed }
        return answers
    }
}
