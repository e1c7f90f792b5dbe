internal import CallControl
internal import SIP

/// Users as a signaling service names them, and as SIP does.
struct SIPNames: Sendable {
    let domain: SIPHost

    /// Whom to call: `user` of our domain, `user@host`, or a `sip:`, `sips:` or `tel:` URI; `nil` for anything else.
    func uri(of user: UserID) -> AnyURI? {
        let text = user.text
        for scheme in ["sip:", "sips:", "tel:"] where text.lowercased().hasPrefix(scheme) { return AnyURI(text) }
        guard let at = text.lastIndex(of: "@") else { return .sip(SIPURI(user: text, host: domain)) }
        let name = String(text[..<at])
        guard !name.isEmpty, case .sip(var uri)? = AnyURI("sip:\(text[text.index(after: at)...])"), uri.user == nil
        else {
            return nil
        }
        uri.user = SIPURI(user: name, host: domain).user
        return .sip(uri)
    }

    /// Whether a URI names a user of our own domain, and no telephone number, which the server might have called for money.
    func isOwn(_ uri: AnyURI) -> Bool {
        guard case .sip(let uri) = uri, let user = uri.user, uri.port == nil else { return false }
        // A number may have parameters of its own (RFC 3261 §19.1.6), and others may send the request elsewhere.
        let plain = SIPURI.plainUser(user).prefix { $0 != ";" }
        let isNumber = plain.allSatisfy { $0.isNumber || "+-.() *#=,".contains($0) }
        return uri.parameters["maddr"] == nil && uri.parameters["user"] == nil
            && uri.host.text.lowercased() == domain.text.lowercased() && !(isNumber && plain.count > 5)
    }

    /// Who somebody is: `user@host` without a port, a telephone number, or `anonymous`. What a peer says of itself is hostile
    /// text, and never makes this fail.
    static func user(of address: NameAddress) -> UserID {
        let text: String
        switch address.uri {
        // Who does not want to be named (RFC 3323 §4.1.1.3).
        case .sip(let uri) where uri.host.text.lowercased() == "anonymous.invalid": text = ""
        case .sip(let uri): text = (uri.user.map { plain($0) + "@" } ?? "") + uri.host.text
        case .tel(let uri): text = uri.digits
        case .other: text = ""
        }
        return (try? UserID(text)) ?? "anonymous"
    }

    /// What an INVITE says of who calls and whom: the number that was dialled is where it was sent, or `To` if that is the account's
    /// own contact.
    func trunkCall(from: NameAddress, _ target: (uri: AnyURI, to: NameAddress?)?, own: UserID) -> TrunkCall {
        func number(_ uri: AnyURI?) -> String? {
            switch uri {
            case .sip(let uri)?: uri.user.map { SIPURI.plainUser($0) }
            case .tel(let uri)?: uri.digits
            case .other?, nil: nil
            }
        }
        let sent = number(target?.uri)
        let isContact = sent == nil || sent == String(own.text.prefix { $0 != "@" })
        return TrunkCall(
            dialled: isContact ? number(target?.to?.uri) : sent,
            caller: number(from.uri).flatMap { TelephoneNumber($0) }?.text ?? Self.user(of: from).text,
            name: from.displayName)
    }

    /// A user part without its escapes, unless they hide what a name may not have.
    private static func plain(_ user: String) -> String {
        let plain = SIPURI.plainUser(user)
        guard !plain.contains("@"), (try? UserID(plain)) != nil else { return user }
        return plain
    }
}
