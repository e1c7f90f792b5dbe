public import CallControl
public import SIP

/// The meaning of user names at a SIP server.
public enum SIPName {
    /// The callee of a name, as the list of callees judges it.
    ///
    /// - Parameters:
    ///   - user: A name as it is given for a call: of a user of the domain, `user@host`, or a URI.
    ///   - domain: That of the account.
    /// - Returns: Nil if it is no callee, or may lead to another one.
    public static func callee(_ user: UserID, at domain: SIPHost) -> Callee? {
        SIPNames(domain: domain).uri(of: user)?.callee(of: domain)
    }

    /// The names of a caller that an entry of a list means.
    ///
    /// A caller with a number of the account's own server comes as `number@domain`, or by a `tel:` URI as the number alone. A number without a
    /// host means both, and `number@domain` too if it is the same in every context, with a plus.
    ///
    /// - Parameters:
    ///   - user: A name as ``caller(_:)`` takes it.
    ///   - domain: That of the account.
    public static func callers(_ user: UserID, at domain: SIPHost) -> Set<UserID> {
        let name = caller(user)
        let callee = Callee(name.text)
        guard let number = TelephoneNumber(callee.name)?.text else { return [name] }
        var other = number
        if let host = callee.host {
            guard host == domain.normalText, number.hasPrefix("+") else { return [name] }
        } else {
            other += "@\(domain.normalText)"
        }
        guard let second = try? UserID(other) else { return [name] }
        return [name, second]
    }

    /// A caller's name as calls have it: `user@host` with the host in normal form, and a telephone number by its digits. A `sip:`, `sips:` or
    /// `tel:` URI is taken, too.
    public static func caller(_ user: UserID) -> UserID {
        let text = user.text
        if ["sip:", "sips:", "tel:"].contains(where: { text.lowercased().hasPrefix($0) }) {
            return AnyURI(text).map { SIPNames.caller(NameAddress($0)) } ?? user
        }
        let callee = Callee(text)
        guard let place = callee.host else {
            // Without a plus it may be a user's name.
            return text.hasPrefix("+") ? AnyURI("tel:\(text)").map { SIPNames.caller(NameAddress($0)) } ?? user : user
        }
        guard let host = SIPHost(place) else { return (try? UserID(callee.description)) ?? user }
        return SIPNames.caller(NameAddress(.sip(SIPURI(user: callee.name, host: host))))
    }
}
