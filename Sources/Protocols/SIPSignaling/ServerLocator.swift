public import DomainNames
public import Core
public import SIP

/// Finds a server's addresses: NAPTR, SRV, A and AAAA records become addresses, the best first (RFC 3263 §4).
///
/// It asks for missing records and begins again with each answer, until none is missing. Answers are kept for their
/// lifetime, but no longer than ``longestKept`` or ``nothingKept``, at most ``capacity``; while name servers fail, old
/// answers stay valid.
public struct ServerLocator: ProtocolCore, Sendable {
    /// An input.
    public enum Input: Sendable {
        /// Find the server. If that is requested while it is being found, missing records are asked for again.
        case locate
        /// The answer to ``Output/ask(_:)``.
        case answered(DNSQuestion, DNSAnswer)
    }

    /// An output.
    public enum Output: Equatable, Sendable {
        /// Ask a name server.
        case ask(DNSQuestion)
        /// The server's addresses, the best first; empty if none is known.
        case located([SIPTarget])
    }

    /// How a server may be spoken to.
    public enum Choice: Hashable, Sendable {
        /// By this transport.
        case only(SIPTransport)
        /// According to the name's records.
        ///
        /// - Parameter isSecure: Whether TLS is the only choice; otherwise forged records could remove it.
        case best(isSecure: Bool)
    }

    private struct Known: Sendable {
        var answer: DNSAnswer
        var expires: Instant
        /// The round in which it was asked for. In that round the answer counts even if it may not be kept.
        var round: Int
    }

    /// A server that has an address yet to be found.
    private struct Place: Hashable {
        let transport: SIPTransport
        let host: String
        let port: UInt16
    }

    /// Answers that are kept.
    public static let capacity = 64
    /// Addresses that are tried at most.
    public static let mostTargets = 32
    /// Records of a kind that are followed.
    private static let mostRecords = 16
    /// The longest time for which records are kept, even if their lifetime is longer: a server that has moved is found
    /// again within minutes.
    public static let longestKept = Duration.seconds(300)
    /// The longest time for which the absence of records is kept.
    public static let nothingKept = Duration.seconds(30)

    private let host: String
    private let port: UInt16?
    private let choice: Choice
    private var tokens: TokenSource
    private var known: [DNSQuestion: Known] = [:]
    private var asked: Set<DNSQuestion> = []
    private var round = 0
    private var isLocating = false

    /// Makes one.
    ///
    /// - Parameters:
    ///   - host: A name, or an address without brackets.
    ///   - port: Its port; nil if records name it.
    ///   - key: 16 random bytes or more, used for nothing else, from which the draws by weight come.
    public init(host: String, port: UInt16?, choice: Choice, key: [UInt8]) {
        self.host = host
        self.port = port
        self.choice = choice
        tokens = TokenSource(key: key)
    }

    /// Never: the caller that asks name servers limits their time.
    public var nextDeadline: Instant? { nil }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .locate:
            round += 1
            asked = []
            isLocating = true
        case .answered(let question, let answer): learn(question, answer, now)
        }
        guard isLocating else { return }
        locate(now, &outbox)
    }

    private mutating func learn(_ question: DNSQuestion, _ answer: DNSAnswer, _ now: Instant) {
        asked.remove(question)
        if known.count >= Self.capacity, known[question] == nil { known = known.filter { $0.value.round == round } }
        guard known.count < Self.capacity || known[question] != nil else { return }
        switch answer {
        case .found(_, let lifetime):
            let kept = min(max(lifetime, .zero), Self.longestKept)
            known[question] = Known(answer: answer, expires: now.advanced(by: kept), round: round)
        case .nothing(let lifetime):
            let kept = min(max(lifetime, .zero), Self.nothingKept)
            known[question] = Known(answer: answer, expires: now.advanced(by: kept), round: round)
        case .failed:
            if case .found? = known[question]?.answer {
                known[question]?.round = round
            } else {
                known[question] = Known(answer: answer, expires: now, round: round)
            }
        }
    }

    private mutating func locate(_ now: Instant, _ outbox: inout [Output]) {
        var missing: [DNSQuestion] = []
        var draws = tokens
        let targets = targets(now, &draws, &missing)
        guard !missing.isEmpty else {
            tokens = draws
            isLocating = false
            return outbox.append(.located(targets))
        }
        for question in missing where asked.insert(question).inserted { outbox.append(.ask(question)) }
    }

    // MARK: The rules

    private func targets(
        _ now: Instant, _ draws: inout TokenSource, _ missing: inout [DNSQuestion]
    ) -> [SIPTarget] {
        var targets: [SIPTarget] = []
        for place in places(now, &draws, &missing) {
            for address in addresses(place.host, now, &missing) {
                let target = SIPTarget(transport: place.transport, address: address.withPort(place.port))
                if targets.count < Self.mostTargets, !targets.contains(target) { targets.append(target) }
            }
        }
        return targets
    }

    private func addresses(_ host: String, _ now: Instant, _ missing: inout [DNSQuestion]) -> [SocketAddress] {
        if let literal = SocketAddress(host: host, port: 0) { return [literal] }
        guard case .addresses(let found)? = records(DNSQuestion(host, .addresses), now, &missing) else { return [] }
        return found
    }

    /// Servers in order, without addresses.
    private func places(_ now: Instant, _ draws: inout TokenSource, _ missing: inout [DNSQuestion]) -> [Place] {
        let isLiteral = SocketAddress(host: host, port: 0) != nil
        let plain = transports.map { Place(transport: $0, host: host, port: port ?? $0.usualPort) }
        // A port means that no records are used (RFC 3263 §4.2).
        guard !isLiteral, port == nil else { return plain }
        let services: [(SIPTransport, String)]
        switch choice {
        case .only(let transport): services = transport.service.map { [(transport, "\($0).\(host)")] } ?? []
        case .best:
            let rules = rules(now, &missing)
            guard missing.isEmpty else { return [] }
            if !rules.isEmpty { return ruled(rules, now, &draws, &missing) }
            services = transports.compactMap { transport in transport.service.map { (transport, "\($0).\(host)") } }
        }
        var isKnown = false
        let found = services.flatMap { transport, name -> [Place] in
            guard case .services(let records)? = self.records(DNSQuestion(name, .services), now, &missing) else {
                return []
            }
            isKnown = true
            return Self.ordered(records, &draws).map { Place(transport: transport, host: $0.target, port: $0.port) }
        }
        return isKnown || !missing.isEmpty ? found : plain
    }

    private func ruled(
        _ rules: [Rule], _ now: Instant, _ draws: inout TokenSource, _ missing: inout [DNSQuestion]
    ) -> [Place] {
        rules.flatMap { rule -> [Place] in
            if rule.isAddress {
                return [Place(transport: rule.transport, host: rule.name, port: rule.transport.usualPort)]
            }
            guard case .services(let records)? = self.records(DNSQuestion(rule.name, .services), now, &missing)
            else { return [] }
            return Self.ordered(records, &draws).map {
                Place(transport: rule.transport, host: $0.target, port: $0.port)
            }
        }
    }

    private struct Rule {
        let transport: SIPTransport
        let name: String
        /// It leads to addresses rather than to SRV records.
        let isAddress: Bool
    }

    /// The rules that lead to an allowed transport, in order.
    private func rules(_ now: Instant, _ missing: inout [DNSQuestion]) -> [Rule] {
        guard case .rules(let records)? = records(DNSQuestion(host, .rules), now, &missing) else { return [] }
        let sorted = records.sorted { ($0.order, $0.preference) < ($1.order, $1.preference) }
        let rules = sorted.compactMap { record -> Rule? in
            guard let transport = SIPTransport(service: record.service), isAllowed(transport),
                record.flags == "s" || record.flags == "a", !record.replacement.isEmpty
            else { return nil }
            return Rule(transport: transport, name: record.replacement, isAddress: record.flags == "a")
        }
        return Array(rules.prefix(Self.mostRecords))
    }

    private func isAllowed(_ transport: SIPTransport) -> Bool {
        switch choice {
        case .only(let only): transport == only
        case .best(let isSecure): transport.isSecure || !isSecure
        }
    }

    /// Without records: what is tried, in order.
    private var transports: [SIPTransport] {
        switch choice {
        case .only(let transport): [transport]
        case .best(isSecure: true): [.tls]
        case .best(isSecure: false): [.tls, .tcp, .udp]
        }
    }

    /// The records of a question; nil if there are none, or they are to be asked for first.
    private func records(
        _ question: DNSQuestion, _ now: Instant, _ missing: inout [DNSQuestion]
    ) -> DNSRecords? {
        guard let known = known[question], known.round == round || known.expires > now else {
            // An answer beyond the capacity would be asked for again and again, so the known ones must do.
            let kept = self.known.values.lazy.filter { [round] in $0.round == round }.count
            if kept < Self.capacity { missing.append(question) }
            return nil
        }
        guard case .found(let records, _) = known.answer else { return nil }
        return records
    }

    /// Servers by priority, and among those of one priority drawn by weight (RFC 2782).
    static func ordered(_ records: [SRVRecord], _ draws: inout TokenSource) -> [SRVRecord] {
        // A target of a single dot means that the service does not exist.
        var left = records.filter { !$0.target.isEmpty && $0.port > 0 }.sorted { $0.priority < $1.priority }
        var ordered: [SRVRecord] = []
        while let first = left.first, ordered.count < mostRecords {
            // Records without weight come first, so that they have a small chance at all.
            let equals = left.filter { $0.priority == first.priority }.sorted { $0.weight == 0 && $1.weight > 0 }
            let sum = equals.reduce(UInt64(0)) { $0 + UInt64($1.weight) }
            let draw = draws.number() % (sum + 1)
            var running: UInt64 = 0
            let chosen =
                equals.first { record in
                    running += UInt64(record.weight)
                    return running >= draw
                } ?? first
            ordered.append(chosen)
            if let place = left.firstIndex(of: chosen) { left.remove(at: place) }
        }
        return ordered
    }
}

extension SIPTransport {
    /// Whether the transport is encrypted.
    public var isSecure: Bool { self == .tls || self == .wss }

    /// Whether it is a WebSocket.
    public var isWebSocket: Bool { self == .ws || self == .wss }

    /// The port without another one.
    public var usualPort: UInt16 {
        switch self {
        case .udp, .tcp: 5_060
        case .tls: 5_061
        case .ws: 80
        case .wss: 443
        }
    }

    /// The name before the domain in SRV records (RFC 3263 §4.2); WebSockets have none.
    fileprivate var service: String? {
        switch self {
        case .udp: "_sip._udp"
        case .tcp: "_sip._tcp"
        case .tls: "_sips._tcp"
        case .ws, .wss: nil
        }
    }

    /// By the service of a NAPTR record (RFC 3263 §4.1, RFC 7118 §8.4).
    fileprivate init?(service: String) {
        switch service {
        case "SIP+D2U": self = .udp
        case "SIP+D2T": self = .tcp
        case "SIPS+D2T": self = .tls
        case "SIP+D2W": self = .ws
        case "SIPS+D2W": self = .wss
        default: return nil
        }
    }
}
