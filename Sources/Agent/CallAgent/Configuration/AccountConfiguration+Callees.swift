public import CallControl
internal import SIP
internal import SIPClient
internal import SIPSignaling

// Calls that strangers ask for, which `account.callees` admits or not.
extension AccountConfiguration {
    /// The user that a program or bot names, if it may transfer its call there. Without a list these are all users of
    /// an exchange, where a transfer leads to no telephone number, and none at a SIP server.
    func mayTransferForBot(_ target: String) -> UserID? {
        guard let user = try? UserID(target) else { return nil }
        if sip == nil, callees == nil { return user }
        return lists(user) ? user : nil
    }

    /// The user that a call flow or an agent names, if this device may call that user on a stranger's word. Without a list these are all
    /// users of an exchange, but no telephone number, where the exchange's trunk may take the call, and none at a SIP server.
    func mayCall(_ target: String) -> UserID? {
        guard let user = mayTransferForBot(target) else { return nil }
        let isListed = sip != nil || callees != nil
        return isListed || TelephoneNumber(Callee(target).name) == nil ? user : nil
    }

    /// Whether ``callees`` has the user of a name.
    func lists(_ user: UserID) -> Bool {
        guard let callees else { return false }
        guard let sip else { return callees.admits(Callee(user.text)) }
        guard let domain = sip.account.address.uri.sip?.host, let callee = SIPName.callee(user, at: domain) else {
            return false
        }
        return callees.admits(callee)
    }

    /// Who calls, as patterns of callers judge it.
    ///
    /// What a telephone network says of the caller counts if it is a number or an address: a name could be that of a user.
    func caller(of invite: ReceivedInvite) -> Callee { caller(invite.inviter, outside: invite.trunk?.caller) }

    /// The same of an invite.
    ///
    /// - Parameters:
    ///   - inviter: Who sends it; a trunk's account, if the call comes from a telephone network.
    ///   - outside: Who calls there, if the trunk says so.
    public func caller(_ inviter: UserID, outside: String?) -> Callee {
        if sip == nil, let outside = outside.map({ Callee($0) }),
            outside.host != nil || TelephoneNumber(outside.name) != nil
        {
            return outside
        }
        return caller(inviter)
    }

    /// A caller by the name that calls have.
    public func caller(_ user: UserID) -> Callee {
        guard let domain = sip?.account.address.uri.sip?.host else { return Callee(user.text) }
        let name = SIPName.caller(user)
        return SIPName.callee(name, at: domain) ?? Callee(name.text)
    }

    /// The name that calls of a caller have, by any form of it.
    public func callerName(_ user: UserID) -> UserID { sip == nil ? user : SIPName.caller(user) }

    /// A list of patterns for callers of this account.
    func callerList(_ patterns: [CalleePattern]) -> CalleeList {
        CalleeList(patterns, ownHost: sip?.account.address.uri.sip?.host.normalText)
    }

    /// The names of a caller that an entry of `answer.allow` or `answer.deny` means.
    func callers(_ entry: UserID) -> Set<UserID> {
        guard let domain = sip?.account.address.uri.sip?.host else { return [entry] }
        return SIPName.callers(entry, at: domain)
    }
}
