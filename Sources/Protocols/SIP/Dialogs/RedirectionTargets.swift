internal import Identifiers

/// The addresses of one outgoing call: those that were called, and those that redirections have named (RFC 3261 §8.1.3.4).
///
/// None is called twice, so that redirections in a circle end.
struct RedirectionTargets: Sendable {
    private var called: [AnyURI]
    private var waiting: [AnyURI] = []

    init(_ first: AnyURI) { called = [first] }

    /// Takes the contacts of a redirection: they come before those of earlier ones, the preferred first.
    ///
    /// 305 names a proxy and 380 another service, not where the callee is.
    ///
    /// - Parameters:
    ///   - callees: The callees that a third party may name. Each redirection names one, also one that follows another.
    ///   - domain: That of the account.
    mutating func take(_ response: SIPResponse, admitting callees: CalleeList, of domain: SIPHost) {
        guard [300, 301, 302].contains(response.status) else { return }
        let isSecure = called[0].sip?.isSecure == true
        var more: [(uri: AnyURI, preference: Double)] = []
        for contact in response.headers.contacts ?? [] {
            guard let uri = Self.followed(contact.uri, isSecure: isSecure), !isKnown(uri),
                uri.callee(of: domain).map(callees.admits) == true,
                !more.contains(where: { $0.uri.isEquivalent(to: uri) })
            else { continue }
            more.append((uri, contact.parameters["q"].flatMap(Double.init) ?? 1))
        }
        // The sort is stable.
        waiting.insert(contentsOf: more.sorted { $0.preference > $1.preference }.map(\.uri), at: 0)
    }

    /// The next address to call; `nil` if there is none, or ``SIPLimits/redirections`` were.
    mutating func next() -> AnyURI? {
        guard called.count <= SIPLimits.redirections, !waiting.isEmpty else { return nil }
        let uri = waiting.removeFirst()
        called.append(uri)
        return uri
    }

    private func isKnown(_ uri: AnyURI) -> Bool { (called + waiting).contains { $0.isEquivalent(to: uri) } }

    /// The address as it is called: without headers and a method, because the callee would write our request by them.
    private static func followed(_ uri: AnyURI, isSecure: Bool) -> AnyURI? {
        switch uri {
        case .sip(var uri):
            guard uri.isSecure || !isSecure else { return nil }
            uri.headers = SIPParameters()
            uri.parameters["method"] = nil
            return .sip(uri)
        case .tel: return isSecure ? nil : uri
        case .other: return nil
        }
    }
}
