public import CallControl
public import ConfigReader
public import JSON
public import SignalingClient

/// How a device's invites go, calls included, where the services that it is like differ.
public struct InviteConfiguration: Sendable, Equatable {
    /// Who tells that an invite's time is up (contract INV-7, INV-8).
    public enum Timekeeper: String, CaseIterable, Sendable {
        /// The service; the device only if the service cannot be reached, half a second later.
        case service
        /// The device, to the moment; the service's later word is not told again.
        case device
    }

    /// Who tells that an invite's time is up.
    public var timekeeper = Timekeeper.service
    /// Which invites to groups are told when the device starts (INV-14).
    public var start = HandsetServiceConfiguration.Start.cold
    /// How long our invites stand; nil for ever.
    public var timeToLive: Duration? = .seconds(30)
    /// Whether our invites fail when nobody is online to hear them.
    public var isOnlineOnly = false
    /// The push payload for those who are not connected.
    public var payload: JSONValue?
    /// The push payload for those who let it pass: a missed call.
    public var missedPayload: JSONValue?

    /// Makes the defaults.
    public init() {}

    init(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        timekeeper = section.enumeration("timeout", of: Timekeeper.self, &problems) ?? timekeeper
        start = section.enumeration("start", of: HandsetServiceConfiguration.Start.self, &problems) ?? start
        if let limit = section.seconds("ttl_s", in: 0...86_400, &problems) {
            timeToLive = limit == .zero ? nil : limit
        }
        isOnlineOnly = section.bool("online_only", &problems) ?? isOnlineOnly
        payload = section.string("payload", &problems).map(JSONValue.string)
        missedPayload = section.string("missed_payload", &problems).map(JSONValue.string)
        section.rejectUnknownKeys(
            known: ["timeout", "start", "ttl_s", "online_only", "payload", "missed_payload"], &problems)
    }

    /// What the machines are to keep to.
    var timings: InviteTimings {
        var timings = InviteTimings()
        if timekeeper == .device { timings.grace = .zero }
        return timings
    }
}
