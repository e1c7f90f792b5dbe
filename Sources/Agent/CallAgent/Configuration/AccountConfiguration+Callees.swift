internal import CallControl
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

    /// Whether ``callees`` has the user of a name.
    func lists(_ user: UserID) -> Bool {
        guard let callees else { return false }
        guard let sip else { return callees.admits(Callee(user.text)) }
        guard let domain = sip.account.address.uri.sip?.host, let callee = SIPName.callee(user, at: domain) else {
            return false
        }
        return callees.admits(callee)
    }

    /// The names of a caller that an entry of `answer.allow` or `answer.deny` means.
    func callers(_ entry: UserID) -> Set<UserID> {
        guard let domain = sip?.account.address.uri.sip?.host else { return [entry] }
        return SIPName.callers(entry, at: domain)
    }
}
