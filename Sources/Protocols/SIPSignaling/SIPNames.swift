internal import CallControl
internal import SIP

/// Converts user ids of a signaling service to SIP addresses and back.
struct SIPNames: Sendable {
    let domain: SIPHost

    /// The URI to call: `user` of our domain, `user@host`, or a `sip:`, `sips:` or `tel:` URI; `nil` for anything else.
    func uri(of user: UserID) -> AnyURI? {
        let text = user.text
        for scheme in ["sip:", "sips:", "tel:"] where text.lowercased().hasPrefix(scheme) { return AnyURI(text) }
        guard let at = text.lastIndex(of: "@") else { return .sip(SIPURI(user: text, host: domain)) }
        let name = String(text[..<at])
        let place = String(text[text.index(after: at)...])
        // An IPv6 address may come without its brackets, and then has no port.
        let host = SIPHost(place).map { "\($0)" } ?? place
        guard !name.isEmpty, case .sip(var uri)? = AnyURI("sip:\(host)"), uri.user == nil
        else {
            return nil
        }
        uri.user = SIPURI(user: name, host: domain).user
        return .sip(uri)
    }

    /// Whether a URI names a user or a telephone number of our own server, without a host or parameters that lead
    /// elsewhere.
    func isOwn(_ uri: AnyURI) -> Bool { uri.callee(of: domain).map { $0.host == nil } == true }

    /// A party's user id: `user@host` without a port and with the host in normal form, a telephone number, or
    /// `anonymous`. A peer's own text about itself is hostile, and never makes this fail.
    static func user(of address: NameAddress) -> UserID { id(address.uri) { $0.user.map(plain) } }

    /// A caller's user id: as ``user(of:)``, but a telephone number by its digits alone. A number to be called stays as it is written,
    /// because the list of callees has judged it so.
    static func caller(_ address: NameAddress) -> UserID { id(address.uri) { number($0) ?? $0.user.map(plain) } }

    /// The digits of a user part that is a telephone number, without visual separators (RFC 3966 §5) and parameters (RFC 3261 §19.1.6).
    ///
    /// - Returns: Nil for a user's name. A number without a plus is one with `user=phone` only, because `200-1` may be another user
    ///   than `2001`, and it is none in another context than the host's (RFC 3966 §5.1.5).
    private static func number(_ uri: SIPURI) -> String? {
        guard let user = uri.user else { return nil }
        let parts = user.split(separator: ";", omittingEmptySubsequences: false)
        guard let first = parts.first, case .tel(let tel)? = AnyURI("tel:\(SIPURI.plainUser(String(first)))"),
            tel.parameters.isEmpty, let number = TelephoneNumber(tel.digits)
        else { return nil }
        let hasContext = parts.dropFirst().contains { $0.lowercased().hasPrefix("phone-context=") }
        let isPhone = uri.parameters["user"]?.lowercased() == "phone"
        return number.text.hasPrefix("+") || isPhone && !hasContext ? number.text : nil
    }

    private static func id(_ uri: AnyURI, _ user: (SIPURI) -> String?) -> UserID {
        let text: String
        switch uri {
        // A caller that withholds its name (RFC 3323 §4.1.1.3).
        case .sip(let uri) where uri.host.normalText == "anonymous.invalid": text = ""
        case .sip(let uri): text = (user(uri).map { $0 + "@" } ?? "") + uri.host.normalText
        case .tel(let uri): text = uri.digits
        case .other: text = ""
        }
        return (try? UserID(text)) ?? "anonymous"
    }

    /// The caller and the dialled number of an INVITE: the number is the request's target, or `To` if that target is
    /// the account's own contact.
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
        let caller = from.uri.sip.flatMap(Self.number) ?? number(from.uri)
        return TrunkCall(
            dialled: isContact ? number(target?.to?.uri) : sent,
            caller: caller.flatMap { TelephoneNumber($0) }?.text ?? Self.caller(from).text,
            name: from.displayName)
    }

    /// A user part without its escapes, unless they hide what a name may not have.
    private static func plain(_ user: String) -> String {
        let plain = SIPURI.plainUser(user)
        guard !plain.contains("@"), (try? UserID(plain)) != nil else { return user }
        return plain
    }
}
