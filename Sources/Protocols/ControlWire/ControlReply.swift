public import JSON

/// The answer to one request. Each request gets one, in the order of the requests.
public struct ControlReply: Codable, Hashable, Sendable {
    /// The request's.
    public var id: JSONValue?
    /// Whether it was carried out.
    public var ok: Bool
    /// Why not.
    public var error: ControlFault?
    /// The call that it was about.
    public var call: UInt64?
    /// The account of that call, if it has a name.
    public var account: String?
    /// The file that is recorded to.
    public var file: String?
    /// Mute and volume, after a request that changes them.
    public var sound: ControlSound?
    /// The answer to `status` and `watch`.
    public var status: ControlStatus?

    /// Says that a request was carried out.
    public init(
        id: JSONValue? = nil, call: UInt64? = nil, account: String? = nil, file: String? = nil,
        sound: ControlSound? = nil, status: ControlStatus? = nil
    ) {
        self.id = id
        self.call = call
        self.account = account
        self.file = file
        self.sound = sound
        self.status = status
        ok = true
    }

    /// Says why a request was not carried out.
    public init(id: JSONValue?, _ fault: ControlFault) {
        self.id = id
        error = fault
        ok = false
    }
}
