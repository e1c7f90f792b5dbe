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

    /// A caller's name as calls have it: `user@host` with the host in normal form. A `sip:`, `sips:` or `tel:` URI is taken, too.
    public static func caller(_ user: UserID) -> UserID {
        let text = user.text
        if ["sip:", "sips:", "tel:"].contains(where: { text.lowercased().hasPrefix($0) }) {
            return AnyURI(text).map { SIPNames.user(of: NameAddress($0)) } ?? user
        }
        return (try? UserID(Callee(text).description)) ?? user
    }
}
