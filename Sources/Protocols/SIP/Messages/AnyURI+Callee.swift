public import Identifiers

extension AnyURI {
    /// Parameters that do not change the callee of a call by our server.
    private static let harmless: Set<String> = ["transport", "user", "gr", "ob"]

    /// Who is called at this address, as the list of callees judges it.
    ///
    /// - Parameter domain: That of the account, whose server takes the call.
    /// - Returns: Nil for an address with more than a user and a host, so that the call could go elsewhere: a password,
    ///   headers, an unknown parameter such as `maddr`, or a telephone number that is one only in some context (RFC
    ///   3966 §5.1.5).
    public func callee(of domain: SIPHost) -> Callee? {
        switch self {
        case .sip(let uri):
            guard let name = uri.plainUser, !name.isEmpty, uri.password == nil, uri.headers.isEmpty,
                uri.parameters.all.allSatisfy({ Self.harmless.contains($0.name.lowercased()) })
            else { return nil }
            guard uri.port == nil, uri.host.isSame(as: domain) || uri.host.normalText == domain.normalText else {
                return Callee(name: name, host: "\(uri.host)" + (uri.port.map { ":\($0)" } ?? ""))
            }
            return Callee(name: name)
        case .tel(let uri): return uri.parameters.isEmpty ? Callee(name: uri.digits) : nil
        case .other: return nil
        }
    }
}

extension SIPHost {
    /// In lower case, without the final dot of a complete name, and an IPv6 address by its canonical text in brackets. Hosts are stored and
    /// compared in this form.
    public var normalText: String { Callee.normal(host: description) }
}
