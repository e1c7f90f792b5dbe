public import JSON

/// `invite.list`: the invites to and from this user that have not ended.
public struct InviteList: RPCMethod {
    /// The method's name on the wire.
    public static let method = "invite.list"

    /// The present state of one invite.
    public struct Entry: Codable, Hashable, Sendable {
        /// The invite.
        public var invite: InviteID
        /// The inviter.
        public var inviter: UserID
        /// The group that is invited, if it is a group invite.
        public var group: GroupID?
        /// Everybody who is invited.
        public var invitees: [UserID]
        /// Invitees that have not answered.
        public var pending: [UserID]
        /// From the inviter's application, as last modified.
        public var data: JSONValue?
        /// Seconds until the invite times out; 0 is never.
        public var ttlRemaining: Double

        /// Makes an entry.
        public init(
            invite: InviteID, inviter: UserID, group: GroupID? = nil, invitees: [UserID], pending: [UserID],
            data: JSONValue? = nil, ttlRemaining: Double
        ) {
            self.invite = invite
            self.inviter = inviter
            self.group = group
            self.invitees = invitees
            self.pending = pending
            self.data = data
            self.ttlRemaining = ttlRemaining
        }

        private enum CodingKeys: String, CodingKey {
            case invite, inviter, group, invitees, pending, data
            case ttlRemaining = "ttl_remaining"
        }
    }

    /// One page of the invites.
    public struct Result: Codable, Hashable, Sendable {
        /// The invites, oldest first: as many as fit into one message.
        public var invites: [Entry]
        /// There are more: ask again with this as `after`.
        public var next: UInt64?

        /// Makes a result.
        public init(invites: [Entry], next: UInt64? = nil) {
            self.invites = invites
            self.next = next
        }
    }

    /// `next` of the answer before; absent: from the start.
    public var after: UInt64?

    /// Makes the parameters.
    public init(after: UInt64? = nil) { self.after = after }
}

/// `invite.modify`: the inviter gives a pending invite other data (INV-15).
public struct InviteModify: RPCMethod {
    /// The method's name on the wire.
    public static let method = "invite.modify"
    /// Empty.
    public typealias Result = Empty

    /// The invite.
    public var invite: InviteID
    /// Replaces the invite's data.
    public var data: JSONValue?

    /// Makes the parameters.
    public init(invite: InviteID, data: JSONValue? = nil) {
        self.invite = invite
        self.data = data
    }
}

/// Data of `inviteModified`: to the invitees that are pending (INV-15).
public struct InviteModified: Codable, Hashable, Sendable {
    /// The invite.
    public var invite: InviteID
    /// Replaces the invite's data.
    public var data: JSONValue?

    /// Makes the data.
    public init(invite: InviteID, data: JSONValue? = nil) {
        self.invite = invite
        self.data = data
    }
}

/// One page of invites as JSON text: the answer to `invite.list`, written without reading the data of any invite.
public struct InviteListText: Hashable, Sendable {
    /// An ``InviteList/Result``.
    public let text: String

    /// Puts entries together.
    ///
    /// - Parameter entries: What ``entry(_:data:)`` has written, oldest first.
    public init(entries: [String], next: UInt64? = nil) {
        let next = next.map { #","next":\#($0)"# } ?? ""
        text = #"{"invites":[\#(entries.joined(separator: ","))]\#(next)}"#
    }

    /// Writes one invite.
    ///
    /// - Parameters:
    ///   - entry: The invite without its data.
    ///   - data: That as JSON text; `nil` for none.
    /// - Throws: ``SignalCodingError`` for a number that JSON cannot express; values read from JSON have none.
    public static func entry(_ entry: InviteList.Entry, data: String?) throws(SignalCodingError) -> String {
        SplicedText.text(try SignalCoding.encode(entry), ["data": data])
    }

    /// The page as a value; `nil` for a text that is none.
    public var list: InviteList.Result? {
        try? SignalCoding.decode(InviteList.Result.self, from: Array(text.utf8), within: .delivery)
    }

    /// The response to the request `id`, ready to send.
    public func response(id: RPCID) throws(SignalCodingError) -> [UInt8] {
        var message = Array(#"{"id":"#.utf8)
        message.reserveCapacity(text.utf8.count + 64)
        message += try SignalCoding.encode(id)
        message += #","jsonrpc":"2.0","result":"#.utf8
        message += text.utf8
        message.append(UInt8(ascii: "}"))
        return message
    }
}
