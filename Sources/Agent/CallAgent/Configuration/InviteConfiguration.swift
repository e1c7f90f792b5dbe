internal import CallControl
internal import ConfigReader
public import JSON
public import SignalingClient

/// How a device's invites go, calls included, where the services that it is like differ.
public struct InviteConfiguration: Sendable, Equatable {
    /// Who reports that an invite timed out (contract INV-7, INV-8).
    public enum Timekeeper: String, CaseIterable, Sendable {
        /// The service; the device only if the service cannot be reached, half a second later.
        case service
        /// The device, exactly on time; the service's later report is ignored.
        case device
    }

    /// Who reports that an invite timed out.
    public var timekeeper = Timekeeper.service
    /// Which invites to groups are received when the device starts (INV-14).
    public var start = HandsetServiceConfiguration.Start.cold
    /// How long our invites ring; nil: no timeout.
    public var timeToLive: Duration? = .seconds(30)
    /// Whether our invites fail if no device of the invitee is connected.
    public var isOnlineOnly = false
    /// The push payload for those who are not connected.
    public var payload: JSONValue?
    /// The push payload for those who let it pass: a missed call.
    public var missedPayload: JSONValue?

    /// Makes the defaults.
    public init() {}

    /// The keys of the section `invites`.
    struct Keys: ConfigKeys {
        private static let usual = InviteConfiguration()

        let timeout = ConfigKey.choice(
            "timeout", of: Timekeeper.self, "which side times invites out: the service, or the device exactly on time"
        ).defaulting(to: usual.timekeeper)
        let start = ConfigKey.choice(
            "start", of: HandsetServiceConfiguration.Start.self,
            "of invites to groups, a device that starts receives those of the last 30 s, or with `warm` all"
        ).defaulting(to: usual.start)
        let timeToLive = ConfigKey.seconds(
            "ttl_s", in: 0...86_400, "how long the device's invites stay open, calls too; 0 for no limit"
        ).defaulting(to: usual.timeToLive ?? .zero)
        let onlineOnly = ConfigKey.bool(
            "online_only", "the device's invites fail at once if no device of an invitee is connected"
        )
        .defaulting(to: usual.isOnlineOnly)
        let payload = ConfigKey.string("payload", "for the push to invitees who are not connected")
        let missedPayload = ConfigKey.string("missed_payload", "for the push to invitees who did not answer")
    }

    init(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        section.read(\.timeout, into: &timekeeper, &problems)
        section.read(\.start, into: &start, &problems)
        let limit = section.value(\.timeToLive, &problems)
        timeToLive = limit == .zero ? nil : limit
        section.read(\.onlineOnly, into: &isOnlineOnly, &problems)
        payload = section.value(\.payload, &problems).map(JSONValue.string)
        missedPayload = section.value(\.missedPayload, &problems).map(JSONValue.string)
    }

    /// What an invite of this device says, calls included.
    func options(
        to users: [UserID], in group: GroupID?, timeToLive: Duration??, onlineOnly: Bool?, _ key: IdempotencyKey
    ) -> InviteOptions {
        InviteOptions(
            to: users, in: group, timeToLive: timeToLive ?? self.timeToLive, payload: payload,
            timeoutPayload: missedPayload, isOnlineOnly: onlineOnly ?? isOnlineOnly, idempotencyKey: key)
    }

    /// Times and limits for the machines.
    var timings: InviteTimings {
        var timings = InviteTimings()
        if timekeeper == .device { timings.grace = .zero }
        return timings
    }
}
