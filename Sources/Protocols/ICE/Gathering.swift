internal import Core

/// Asking STUN servers for our address from each socket (RFC 8445 §5.1.1.2).
struct Gathering: Sendable {
    struct Query: Sendable {
        let id: TransactionID
        let local: SocketAddress
        let server: Int
        let serverAddress: SocketAddress
        var interval: Duration
        var nextSend: Instant
    }

    /// A NAT binding that is kept open until checks do so.
    private struct Binding: Sendable {
        let local: SocketAddress
        let serverAddress: SocketAddress
        var nextKeepAlive: Instant
    }

    private static let firstInterval = Duration.milliseconds(250)
    private static let keepAliveInterval = Duration.seconds(15)

    private var queries: [Query] = []
    private var bindings: [Binding] = []
    /// When servers that have not answered are given up; `nil` once gathering has ended.
    private var end: Instant?

    var isUnderWay: Bool { end != nil }

    /// Begins, or continues until a later time.
    mutating func begin(until end: Instant) { self.end = end }

    /// Gives up the servers that have not answered, if the time for it has come.
    mutating func giveUp(at now: Instant) -> Bool {
        guard let end, end <= now else { return false }
        queries = []
        return true
    }

    /// Ends, if it is under way and no STUN server has yet to answer.
    mutating func conclude() -> Bool {
        guard end != nil, queries.isEmpty else { return false }
        end = nil
        return true
    }

    /// Other packets keep the NAT bindings open from now on.
    mutating func endKeepAlive() { bindings = [] }

    func isAwaiting(_ id: TransactionID) -> Bool { queries.contains { $0.id == id } }

    mutating func ask(
        _ server: Int, at serverAddress: SocketAddress, from local: SocketAddress, _ commons: inout AgentCommons,
        at now: Instant
    ) {
        let query = Query(
            id: commons.transactionID(), local: local, server: server, serverAddress: serverAddress,
            interval: Self.firstInterval, nextSend: now.advanced(by: commons.configuration.pacing * queries.count))
        queries.append(query)
    }

    mutating func send(_ commons: inout AgentCommons, at now: Instant) {
        for index in queries.indices where queries[index].nextSend <= now {
            let query = queries[index]
            commons.send(
                STUNBuilder(.request, .binding, query.id).finish(fingerprint: true), from: .socket(query.local),
                to: query.serverAddress)
            queries[index].nextSend = now.advanced(by: query.interval)
            queries[index].interval = min(query.interval * 2, .seconds(2))
        }
        for index in bindings.indices where bindings[index].nextKeepAlive <= now {
            let binding = bindings[index]
            bindings[index].nextKeepAlive = now.advanced(by: Self.keepAliveInterval)
            commons.send(
                STUNBuilder(.indication, .binding, commons.transactionID()).finish(fingerprint: true),
                from: .socket(binding.local), to: binding.serverAddress)
        }
    }

    /// Handles the answer to a query, if `response` is one and comes from the address that the query went to.
    mutating func take(
        _ response: STUNMessage, local: SocketAddress, source: SocketAddress, at now: Instant
    ) -> Query? {
        let found = queries.firstIndex {
            $0.id == response.transactionID && $0.local == local && $0.serverAddress == source
        }
        guard let found else { return nil }
        let query = queries.remove(at: found)
        if response.messageClass == .success {
            bindings.append(
                Binding(
                    local: local, serverAddress: source, nextKeepAlive: now.advanced(by: Self.keepAliveInterval)))
        }
        return query
    }

    mutating func remove(local: SocketAddress) {
        queries.removeAll { $0.local == local }
        bindings.removeAll { $0.local == local }
    }

    var nextDeadline: Instant? {
        ([end].compactMap(\.self) + queries.map(\.nextSend) + bindings.map(\.nextKeepAlive)).min()
    }
}
