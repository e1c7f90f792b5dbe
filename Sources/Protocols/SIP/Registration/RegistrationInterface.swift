/// The registrar, the address of record and the contact of a registration.
public struct RegistrationConfiguration: Sendable {
    /// The domain's registrar, such as `sip:example.com`.
    public var registrar: AnyURI
    /// The address of record.
    public var address: NameAddress
    /// Our address for requests.
    public var contact: AnyURI
    /// An outbound proxy that requests pass.
    public var routes: [NameAddress] = []
    /// How long the binding is to last, in seconds.
    public var seconds: UInt32 = 600
    /// `urn:uuid:…`, the same for the life of the device (RFC 5626 §4.1); `nil` asks for neither outbound nor a GRUU.
    public var instance: String?
    /// The number of this flow, from 1 (RFC 5626 §4.2).
    public var flowNumber = 1
    /// The wait after the first failure, at most; it doubles with each (RFC 5626 §4.5).
    public var firstWait: Duration = .seconds(30)
    /// No wait is longer, except that of a registrar's `Retry-After`, up to ``SIPLimits/retryAfterSeconds``.
    public var longestWait: Duration = .seconds(1_800)
    /// `User-Agent`; `nil` sends none.
    public var product: String?

    /// Makes a configuration.
    public init(registrar: AnyURI, address: NameAddress, contact: AnyURI) {
        self.registrar = registrar
        self.address = address
        self.contact = contact
    }
}

/// A registrar's answer for our binding.
public struct Registration: Equatable, Sendable {
    /// Lifetime of the binding, in seconds, as granted by the registrar.
    public let seconds: UInt32
    /// Proxies that our requests outside of dialogs must pass (RFC 3608).
    public let serviceRoutes: [NameAddress]
    /// Addresses of this very device (RFC 5627), to be used as `Contact`.
    public let publicGRUU: AnyURI?
    /// A GRUU that does not reveal our identity.
    public let temporaryGRUU: AnyURI?
    /// The registrar keeps the flow for requests to us (RFC 5626 §6), which so needs keepalives.
    public let usesOutbound: Bool
    /// Seconds between keepalives that the edge asks for (`Flow-Timer`), within ``SIPLimits/keepaliveSeconds``.
    public let keepaliveSeconds: UInt32?
}

/// Why a registration failed.
public enum RegistrationFailure: Equatable, Sendable {
    /// Wrong password, or a challenge that we cannot meet. It is not tried again, nor are refusals: a server that has
    /// served us before has then refused ``RegistrationMachine/patience`` times in a row.
    case unauthorized
    /// Refused for good, such as 403 and 404. It is not tried again.
    case refused(Int)
    /// Tried again after that time. 408 also means no answer, and 503 a failed flow.
    case temporary(Int, retryAfter: Duration)
}

/// An input of ``RegistrationMachine``.
public enum RegistrationInput: Sendable {
    /// A flow to the registrar is open, for the first time or again after ``flowLost``: register at once, or when the
    /// wait after a failure has ended.
    case flowOpened
    /// The next flow goes to another server than the one that failed: waits do not apply to it.
    case serverChanged
    /// The machine's network has changed: what failed may go now. A wait that the server asked for stays.
    case networkChanged
    /// The flow is gone. Nothing is sent until there is another.
    case flowLost
    /// The answer to the request that was sent last.
    case response(SIPResponse)
    /// It had no answer: 408, or 503 if it could not be sent.
    case failed(Int)
    /// Our address has changed: register again at once.
    case contactChanged(AnyURI)
    /// Remove the binding and end.
    case unregister
    /// ``RegistrationMachine/nextDeadline`` has come. Early calls are harmless.
    case timerFired
}

/// An output of ``RegistrationMachine``.
public enum RegistrationOutput: Equatable, Sendable {
    /// Send this as a transaction; its final response, or that there is none, is an input.
    case send(SIPRequest)
    /// We are registered, for the first time or again.
    case registered(Registration)
    /// The registration failed. An earlier binding lasts until ``lost``.
    case failed(RegistrationFailure)
    /// The binding has expired, or its flow is gone: calls do not reach us.
    case lost
    /// The binding is removed, or nothing more can be done about it.
    case unregistered
}
