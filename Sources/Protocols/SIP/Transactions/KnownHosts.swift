internal import Core

/// A set of hosts. Names are compared without case, and addresses by value.
struct HostSet: Sendable {
    private var texts: Set<String> = []

    /// Makes a set.
    init(_ hosts: some Sequence<SIPHost> = []) { for host in hosts { insert(host) } }

    /// Adds a host.
    mutating func insert(_ host: SIPHost) { texts.insert(host.normalText) }

    /// Whether a host is one of them.
    func contains(_ host: SIPHost) -> Bool { !texts.isEmpty && texts.contains(host.normalText) }

    mutating func formUnion(_ other: HostSet) { texts.formUnion(other.texts) }
}

/// The hosts that may send messages of calls from other addresses than those that the calls use: the account's server,
/// and hosts that the calls give by name rather than by address.
///
/// A name is looked up when a message of a call that names it comes from an unknown address. That message is refused:
/// over UDP it is sent again. Capacity: ``capacity`` names, of which the one that was looked up first is evicted; each
/// is valid for ``lasting``.
struct KnownHosts: Sendable {
    private struct Name {
        var hosts = HostSet()
        var since: Instant
    }

    /// Names that are known.
    static let capacity = 64
    /// How long the addresses of a name are valid before the name is looked up again.
    static let lasting = Duration.seconds(60)

    private var servers = HostSet()
    private var names: [String: Name] = [:]
    private var wanted: [String] = []

    init() {}

    /// The server is at these addresses.
    mutating func locate(servers hosts: [SIPHost]) { servers = HostSet(hosts) }

    /// Whether what comes by a flow comes from the server.
    func isServer(_ flow: SIPFlow) -> Bool {
        flow.isToServer || flow.remoteHost.map { servers.contains($0) } == true
    }

    /// Whether a message on one flow may belong to a transaction or dialog on another.
    func isSamePeer(_ flow: SIPFlow, as other: SIPFlow) -> Bool {
        if flow == other || isServer(flow) { return true }
        guard let host = flow.remoteHost, let known = other.remoteHost else { return false }
        return host.isSame(as: known)
    }

    /// Whether a host, which may be a name that was looked up, has that address.
    func isSame(_ host: SIPHost, as address: SIPHost) -> Bool {
        host.isSame(as: address) || names[host.normalText]?.hosts.contains(address) == true
    }

    /// The addresses that a host has, as far as they are known.
    func insert(_ host: SIPHost, into hosts: inout HostSet) {
        hosts.insert(host)
        if let name = names[host.normalText] { hosts.formUnion(name.hosts) }
    }

    // MARK: Names

    /// Requests lookups of those hosts that are names and not known.
    mutating func want(_ hosts: [SIPHost], at now: Instant) {
        for host in hosts where !host.isAddress {
            let name = host.normalText
            if let known = names[name], known.since.duration(to: now) < Self.lasting { continue }
            if names[name] == nil, names.count >= Self.capacity,
                let oldest = names.min(by: { $0.value.since < $1.value.since })?.key
            {
                names[oldest] = nil
            }
            // The earlier addresses stay valid until the answer comes.
            names[name, default: Name(since: now)].since = now
            wanted.append(name)
        }
    }

    /// The names to be looked up, each once.
    mutating func takeWanted() -> [String] {
        defer { wanted = [] }
        return wanted
    }

    /// A name has resolved to these addresses; if there are none, the earlier ones stay valid.
    mutating func learn(_ name: String, _ hosts: [SIPHost]) {
        if !hosts.isEmpty { names[name]?.hosts = HostSet(hosts) }
    }
}

/// Messages that name a call or a request of ours, and came from an address of neither. They change nothing.
public struct ForeignMessages: Sendable {
    /// How many there were.
    public private(set) var count = 0
    /// The method of the last one, or of the request that it answers.
    public private(set) var method: SIPMethod?
    /// The source of the last one.
    public private(set) var host: SIPHost?

    mutating func note(_ method: SIPMethod?, by flow: SIPFlow) {
        count += 1
        self.method = method
        host = flow.remoteHost
    }
}
