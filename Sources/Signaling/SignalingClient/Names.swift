public import CallControl
internal import SignalWire

// Call control and the wire have names of their own for the same things, because there are other services than the
// exchange. Here a short name is call control's; the wire's are written in full.

/// Names a user.
public typealias UserID = CallControl.UserID
/// Names a device.
public typealias DeviceID = CallControl.DeviceID
/// Names an invite.
public typealias InviteID = CallControl.InviteID
/// Names a group.
public typealias GroupID = CallControl.GroupID

extension Identifier {
    /// A name for the wire.
    ///
    /// - Throws: `invalidRequest` for a name that the exchange would refuse.
    init(_ text: String, of member: String, doing activity: String) throws(SignalingError) {
        do throws(IdentifierFault) {
            try self.init(text)
        } catch {
            throw SignalingError(
                .invalidRequest, activity: activity, cause: "\(member) \(error)",
                advice: "Names have 1 to \(SignalLimits.nameBytes) bytes, in Unicode Normalization Form C.")
        }
    }

    /// A name for the wire, if there is one to be told.
    static func of(_ text: String?, _ member: String, doing activity: String) throws(SignalingError) -> Self? {
        guard let text else { return nil }
        return try Self(text, of: member, doing: activity)
    }
}

extension TextIdentifier {
    /// The name that the exchange told.
    init<Kind>(_ name: Identifier<Kind>) { self.init(rawValue: name.text) }
}

extension SignalWire.InviteID {
    /// An invite that the exchange told us of.
    init(_ invite: CallControl.InviteID, doing activity: String) throws(SignalingError) {
        try self.init(invite.rawValue, of: "the invite's id", doing: activity)
    }
}

extension SignalWire.GroupID {
    /// A group that an application names.
    init(_ group: CallControl.GroupID) throws(SignalingError) {
        try self.init(group.rawValue, of: "the group's id", doing: "name the group \(group)")
    }
}
