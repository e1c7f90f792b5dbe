internal import BlockingWork
internal import CallControl
internal import DomainNames
internal import ICE
internal import Core
internal import NameLookup
internal import Realtime

/// Turns the servers that a service or a configuration names into addresses (RFC 7064, RFC 7065).
enum ICEServerLookup {
    /// The address of each name; nil for a name that has none. A name is missing if no name server has answered.
    typealias Answers = [String: SocketAddress?]

    /// One URL of a server; nil for what we cannot use.
    static func location(_ url: String) -> ICEServerURL? {
        ICEServerURL(url).flatMap { $0.scheme == .stuns ? nil : $0 }
    }

    /// Names that can be looked up together, so that no name waits for another one: the system's own lookup blocks for each.
    static func groups(of names: Set<String>) -> [Set<String>] {
        let systems = names.filter { NameClient.isLocal($0) }
        var groups = systems.map { Set([$0]) }
        let others = names.subtracting(systems)
        if !others.isEmpty { groups.append(others) }
        return groups
    }

    /// Looks up the names of a group, on a thread that may block: within five seconds, or as the system does.
    static func answers(to names: Set<String>) async -> Answers {
        await BlockingThreads.names.run {
            let questions = Dictionary(uniqueKeysWithValues: names.map { ($0, DNSQuestion($0, .addresses)) })
            let found = NameClient().answers(to: Array(Set(questions.values)))
            var answers: Answers = [:]
            for (name, question) in questions {
                switch found[question] {
                case .found(.addresses(let addresses), _)?: answers.updateValue(addresses.first, forKey: name)
                case .nothing?: answers.updateValue(system(name), forKey: name)
                case .failed?, .found?, nil:
                    if let address = system(name) { answers.updateValue(address, forKey: name) }
                }
            }
            return answers
        }
    }

    /// What name servers do not know the system may, if the name is of the local link.
    private static func system(_ name: String) -> SocketAddress? {
        NameClient.isLocal(name) ? SocketAddress.lookUp(host: name, port: 0) : nil
    }
}

/// The ICE servers of a device, with the addresses that are known now.
struct ICEServerList {
    /// Servers with an address, in the order in which they were named.
    private(set) var known: [ICE.ICEServer] = []
    private var servers: [CallControl.ICEServer] = []
    /// By name, those of the servers alone.
    private var addresses: [String: SocketAddress] = [:]
    private var begunLookups = 0
    private var newestLookup = 0

    /// Begins a lookup, before the servers are asked for. Lookups may get them in another order.
    ///
    /// - Returns: The lookup's number.
    mutating func beginLookup() -> Int {
        begunLookups += 1
        return begunLookups
    }

    /// Takes the servers, unless a lookup that began later has brought its own. Those that are named by their address, or by a name
    /// that was found before, are known at once.
    ///
    /// - Returns: The names to look up.
    mutating func take(_ servers: [CallControl.ICEServer], of lookup: Int) -> Set<String> {
        guard lookup > newestLookup else { return [] }
        newestLookup = lookup
        self.servers = servers
        let hosts = servers.flatMap { server in server.urls.compactMap { ICEServerLookup.location($0)?.host } }
        let names = Set(hosts.filter { SocketAddress(host: $0, port: 0) == nil })
        addresses = addresses.filter { names.contains($0.key) }
        update()
        return names
    }

    /// Takes what was found. A name that no name server has answered for keeps its address.
    mutating func take(_ answers: ICEServerLookup.Answers) {
        for (name, address) in answers { addresses[name] = address }
        update()
    }

    /// A server without an address, or without required name and password, is left out.
    private mutating func update() {
        known = servers.flatMap { server in
            server.urls.compactMap { url in
                guard let location = ICEServerLookup.location(url),
                    let address = SocketAddress(host: location.host, port: location.port)
                        ?? addresses[location.host]?.withPort(location.port)
                else { return nil }
                switch location.scheme {
                case .stun, .stuns: return ICE.ICEServer(.stun, at: address)
                case .turn, .turns:
                    guard let username = server.username, let password = server.credential else { return nil }
                    let kind = ICE.ICEServer.Kind.turn(location.transport, username: username, password: password)
                    return ICE.ICEServer(kind, at: address)
                }
            }
        }
    }
}
