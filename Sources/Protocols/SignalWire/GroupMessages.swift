/// `group.create`: makes a group whose owner is this user (GRP-1).
public struct GroupCreate: RPCMethod {
    /// The method's name on the wire.
    public static let method = "group.create"

    /// The group that the exchange made.
    public struct Result: Codable, Hashable, Sendable {
        /// The group's id.
        public var group: GroupID

        /// Makes a result.
        public init(group: GroupID) { self.group = group }
    }

    /// The id that the group is to have; absent: the exchange chooses one.
    public var group: GroupID?
    /// Display name.
    public var name: String?
    /// Further first members: user ids or public ids. Absent: none.
    public var members: [UserID]?

    /// Makes the parameters.
    public init(group: GroupID? = nil, name: String? = nil, members: [UserID]? = nil) {
        self.group = group
        self.name = name
        self.members = members
    }
}

/// `group.join`: this user becomes a member; who knows a group's id may.
public struct GroupJoin: RPCMethod {
    /// The method's name on the wire.
    public static let method = "group.join"
    /// Empty.
    public typealias Result = Empty

    /// The group's id.
    public var group: GroupID

    /// Makes the parameters.
    public init(group: GroupID) { self.group = group }
}

/// `group.leave`: this user is a member no more. The owner cannot leave; it dismisses the group.
public struct GroupLeave: RPCMethod {
    /// The method's name on the wire.
    public static let method = "group.leave"
    /// Empty.
    public typealias Result = Empty

    /// The group's id.
    public var group: GroupID

    /// Makes the parameters.
    public init(group: GroupID) { self.group = group }
}

/// `group.dismiss`: the owner ends the group.
public struct GroupDismiss: RPCMethod {
    /// The method's name on the wire.
    public static let method = "group.dismiss"
    /// Empty.
    public typealias Result = Empty

    /// The group's id.
    public var group: GroupID

    /// Makes the parameters.
    public init(group: GroupID) { self.group = group }
}

/// `group.members`: the members of a group; only members receive them.
public struct GroupMembers: RPCMethod {
    /// The method's name on the wire.
    public static let method = "group.members"

    /// The group's present state.
    public struct Result: Codable, Hashable, Sendable {
        /// The group's id.
        public var group: GroupID
        /// Display name.
        public var name: String?
        /// The user that made it.
        public var owner: UserID
        /// All members in the order of joining, the owner first.
        public var members: [UserID]

        /// Makes a result.
        public init(group: GroupID, name: String? = nil, owner: UserID, members: [UserID]) {
            self.group = group
            self.name = name
            self.owner = owner
            self.members = members
        }
    }

    /// The group's id.
    public var group: GroupID

    /// Makes the parameters.
    public init(group: GroupID) { self.group = group }
}

/// `group.list`: the groups that this user is in.
public struct GroupList: RPCMethod {
    /// The method's name on the wire.
    public static let method = "group.list"

    /// One of the user's groups.
    public struct Entry: Codable, Hashable, Sendable {
        /// The group's id.
        public var group: GroupID
        /// Display name.
        public var name: String?
        /// The user that made it.
        public var owner: UserID

        /// Makes an entry.
        public init(group: GroupID, name: String? = nil, owner: UserID) {
            self.group = group
            self.name = name
            self.owner = owner
        }
    }

    /// The user's groups.
    public struct Result: Codable, Hashable, Sendable {
        /// The groups, in the order of their ids: as many as fit into one message.
        public var groups: [Entry]
        /// There are more: ask again with this as `after`.
        public var next: GroupID?

        /// Makes a result.
        public init(groups: [Entry], next: GroupID? = nil) {
            self.groups = groups
            self.next = next
        }
    }

    /// `next` of the answer before; absent: from the start.
    public var after: GroupID?

    /// Makes the parameters.
    public init(after: GroupID? = nil) { self.after = after }
}

/// Data of `groupChanged`: to each device of each member, including those of the member that caused the change (GRP-1).
public struct GroupChanged: Codable, Hashable, Sendable {
    /// A change of a group.
    public enum Change: String, Codable, Sendable {
        case created, joined, left, dismissed
    }

    /// The group's id.
    public var group: GroupID
    /// The change.
    public var change: Change
    /// The user that made, joined, left or dismissed it.
    public var user: UserID
    /// With `created`: all members.
    public var members: [UserID]?
    /// With `created`: its name for people, if it has one.
    public var name: String?

    /// Makes the data.
    public init(group: GroupID, change: Change, user: UserID, members: [UserID]? = nil, name: String? = nil) {
        self.group = group
        self.change = change
        self.user = user
        self.members = members
        self.name = name
    }
}
