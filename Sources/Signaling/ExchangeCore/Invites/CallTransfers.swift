import JSON
import SignalWire

/// What a call's parties have asked each other to do in their place, and how long the chain of transfers is (CALL-8).
struct CallTransfers: Sendable {
    /// What one of them wants the other to do.
    struct Wish: Sendable {
        let target: UserID
        /// The asking party's call with the target, which the new one takes the place of.
        let replaces: InviteID?

        init(_ data: JSONValue?) throws(RPCError) {
            guard let text = data?["to"]?.string, let target = try? UserID(text) else {
                throw RPCError(.invalidParams, "A transfer needs \"to\", the user that the peer should call.")
            }
            self.target = target
            guard let replaces = data?["replaces"] else {
                self.replaces = nil
                return
            }
            guard let id = replaces.string.flatMap({ try? InviteID($0) }) else {
                throw RPCError(.invalidParams, "\"replaces\" must be the id of an invite.")
            }
            self.replaces = id
        }
    }

    /// An invite that does what the other party of its inviter's call has asked for.
    struct Granted: Sendable {
        /// The how-manyeth transfer in a row it is.
        let count: Int
        /// The call in which it was asked for.
        let call: Call
        /// Who asked.
        let by: UserID
    }

    /// The how-manyeth transfer in a row made the call; 0 if none did.
    var count = 0
    /// The last request of each party.
    var wishes: [UserID: Wish] = [:]
}
