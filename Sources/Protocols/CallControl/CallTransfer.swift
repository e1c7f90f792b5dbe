public import JSON

/// What is said of a transfer (contract CALL-8): by signals of the call that is given up, and in the data of the invite that takes
/// its place.
public enum CallTransfer {
    /// The type of the signal that asks for it.
    public static let signal = "transfer"
    /// The type of the signal that reports its progress.
    public static let progressSignal = "transferProgress"
    /// Where the invite's data has its ``Origin``.
    public static let key = "transfer"

    /// A party of a call asks the other to call a third one in its place.
    public struct Wish: Hashable, Sendable {
        /// The user to call.
        public var target: UserID
        /// The requester's call with the target, which the new call replaces.
        public var replaces: InviteID?
        /// The target is none of the service's own users: a call there may cost money.
        public var isOutside = false
        /// The target is none of those that the account lists for calls on a stranger's word.
        public var isUnlisted = false

        /// Makes one.
        public init(target: UserID, replaces: InviteID? = nil) {
            self.target = target
            self.replaces = replaces
        }

        /// Reads a peer's request; `nil` if it names no target.
        public init?(data: JSONValue) {
            guard let text = data["to"]?.string, let target = try? UserID(text) else { return nil }
            self.target = target
            replaces = data["replaces"]?.string.flatMap { try? InviteID($0) }
            isOutside = data["outside"] == .bool(true)
            isUnlisted = data["unlisted"] == .bool(true)
        }

        /// As it is sent.
        public var data: JSONValue {
            var members: [String: JSONValue] = ["to": .string(target.text)]
            if let replaces { members["replaces"] = .string(replaces.text) }
            if isOutside { members["outside"] = .bool(true) }
            if isUnlisted { members["unlisted"] = .bool(true) }
            return .object(members)
        }
    }

    /// The progress of the new call, as the requester receives it.
    public enum Progress: String, CaseIterable, Hashable, Sendable {
        /// The target is being called.
        case trying
        /// It rings there.
        case ringing
        /// The target took the call.
        case accepted
        /// The peer does not do what it was asked.
        case refused
        /// The target did not take the call.
        case failed

        /// Whether nothing comes after it.
        public var isFinal: Bool {
            switch self {
            case .trying, .ringing: false
            case .accepted, .refused, .failed: true
            }
        }

        /// Reads what a peer says.
        public init?(data: JSONValue) {
            guard let text = data["state"]?.string, let progress = Self(rawValue: text) else { return nil }
            self = progress
        }

        /// As it is sent.
        public var data: JSONValue { ["state": .string(rawValue)] }
    }

    /// Which call an invite takes the place of.
    public struct Origin: Hashable, Sendable {
        /// The call in which the transfer was asked for; `nil` if the service does not say.
        public var invite: InviteID?
        /// Who asked for it, as the service says.
        public var by: UserID?
        /// The target's call that ends with this one's answer.
        public var replaces: InviteID?

        /// Makes one.
        public init(invite: InviteID? = nil, by: UserID? = nil, replaces: InviteID? = nil) {
            self.invite = invite
            self.by = by
            self.replaces = replaces
        }

        /// Reads an invite's data; `nil` if it is no transfer.
        public init?(inviteData data: JSONValue) {
            guard let origin = data[CallTransfer.key], case .object = origin else { return nil }
            invite = origin["invite"]?.string.flatMap { try? InviteID($0) }
            by = origin["by"]?.string.flatMap { try? UserID($0) }
            replaces = origin["replaces"]?.string.flatMap { try? InviteID($0) }
        }

        /// What an invite's data has under ``CallTransfer/key``.
        public var data: JSONValue {
            var members: [String: JSONValue] = [:]
            if let invite { members["invite"] = .string(invite.text) }
            if let by { members["by"] = .string(by.text) }
            if let replaces { members["replaces"] = .string(replaces.text) }
            return .object(members)
        }
    }
}
