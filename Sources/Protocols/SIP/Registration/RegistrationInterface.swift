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
    /// `urn:uuid:…`, unchanged for the life of the device (RFC 5626 §4.1); with `nil`, neither outbound nor a GRUU is
    /// requested.
    public var instance: String?
    /// The number of this flow, from 1 (RFC 5626 §4.2).
    public var flowNumber = 1
    /// The longest wait after the first failure; it doubles with each failure (RFC 5626 §4.5).
    public var firstWait: Duration = .seconds(30)
    /// No wait is longer, except that of a registrar's `Retry-After`, up to ``SIPLimits/retryAfterSeconds``.
    public var longestWait: Duration = .seconds(1_800)
    /// `User-Agent`; `nil` sends none.
    public var product: String?
    /// Whether the registrar is only asked for the bindings of the address, once, by a REGISTER without `Contact` (RFC 3261 §10.2.3). That
    /// needs the same credentials, and changes no binding.
    public var isQuery = false

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
    /// A GRUU: an address of exactly this device (RFC 5627), for use as `Contact`.
    public let publicGRUU: AnyURI?
    /// A GRUU that does not reveal our identity.
    public let temporaryGRUU: AnyURI?
    /// The registrar keeps the flow for requests to us (RFC 5626 §6), so the flow needs keepalives.
    public let usesOutbound: Bool
    /// Seconds between keepalives that the edge asks for (`Flow-Timer`), within ``SIPLimits/keepaliveSeconds``.
    public let keepaliveSeconds: UInt32?

    init(
        seconds: UInt32, serviceRoutes: [NameAddress], publicGRUU: AnyURI?, temporaryGRUU: AnyURI?, usesOutbound: Bool,
        keepaliveSeconds: UInt32?
    ) {
        self.seconds = seconds
        self.serviceRoutes = serviceRoutes
        self.publicGRUU = publicGRUU
        self.temporaryGRUU = temporaryGRUU
        self.usesOutbound = usesOutbound
        self.keepaliveSeconds = keepaliveSeconds
    }

    /// The answer to a question: there is no binding of ours.
    init() {
        self.init(
            seconds: 0, serviceRoutes: [], publicGRUU: nil, temporaryGRUU: nil, usesOutbound: false,
            keepaliveSeconds: nil)
    }
}

/// Why a registration failed.
public enum RegistrationFailure: Equatable, Sendable {
    /// Wrong password, or a challenge that we cannot meet. It is not tried again, nor are refusals: a server that has
    /// served us before has then refused ``RegistrationMachine/patience`` times in a row.
    case unauthorized
    /// Refused permanently, such as by 403 and 404. It is not tried again.
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
    /// The machine's network has changed: a failed registration is tried now, unless the server asked for the wait.
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
    /// Send this as a transaction; its final response, or its failure, is an input.
    case send(SIPRequest)
    /// We are registered, for the first time or again.
    case registered(Registration)
    /// The registration failed. An earlier binding lasts until ``lost``.
    case failed(RegistrationFailure)
    /// The binding has expired, or its flow is gone: calls do not reach us.
    case lost
    /// The binding is removed, or the attempt to remove it has ended.
    case unregistered
}
