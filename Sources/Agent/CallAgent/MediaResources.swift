internal import Call
internal import Core
internal import ICE
internal import MediaEngine
internal import Realtime
internal import SecureTransport

/// What a device has for the media of its calls: workers and sockets, an address, a certificate and ICE servers.
struct MediaResources {
    let engine: MediaEngine
    private let configuration: DeviceConfiguration
    /// What calls without ICE name, where sockets are bound to all.
    private let address: MediaAddress
    /// What the device's calls are known by in the engine.
    private let owner: UInt16
    private var identity: DTLSIdentity?
    /// For credentials and names in descriptions.
    var generator = SystemRandomNumberGenerator()

    init(_ configuration: DeviceConfiguration, engine: MediaEngine, address: MediaAddress, owner: UInt16 = 0) {
        self.engine = engine
        self.owner = owner
        self.configuration = configuration
        self.address = address
    }

    // MARK: ICE servers

    /// Servers that help calls to be connected.
    var servers = ICEServerList()

    // MARK: Certificate

    /// The certificate that calls show now; another one after some weeks.
    mutating func currentIdentity() throws(DTLSError) -> DTLSIdentity {
        let now = MonotonicClock.wallTime
        if let identity, !identity.needsRotation(at: now) { return identity }
        let fresh = try DTLSIdentity(at: now)
        identity = fresh
        return fresh
    }

    mutating func forgetIdentity() { identity = nil }

    // MARK: Calls

    /// Finds a place for a call's media, and begins to negotiate it.
    mutating func prepareCall(usesCard: Bool) throws -> (MediaPlacement, MediaNegotiation) {
        let placement = place(usesCard: usesCard)
        // Keys may be written into descriptions only where no third party can read them.
        let means = try means(at: placement, keysAllowed: configuration.account.isSignalingPrivate)
        return (placement, MediaNegotiation(configuration.media.negotiation, means, using: &generator))
    }

    /// Places the media of a bot's leg, which has ICE, DTLS and Opus independent of calls.
    mutating func prepareLeg() throws -> (MediaPlacement, MediaNegotiation) {
        let placement = place()
        var media = configuration.media
        media.offers = .webRTC
        media.codecs = [.opus]
        media.allowsPlainMedia = false
        let means = try means(at: placement, keysAllowed: false)
        return (placement, MediaNegotiation(media.negotiation, means, using: &generator))
    }

    private func place(usesCard: Bool = false) -> MediaPlacement {
        var placement = engine.place(usesCard: usesCard)
        placement.owner = owner
        return placement
    }

    private mutating func means(
        at placement: MediaPlacement, keysAllowed: Bool
    ) throws -> MediaNegotiation.Means {
        let bound = placement.localAddress
        return MediaNegotiation.Means(
            address: bound.isUnspecified ? address.address.withPort(bound.port) : bound,
            isBoundToAll: bound.isUnspecified, keysAllowed: keysAllowed,
            fingerprint: try currentIdentity().fingerprint(.sha256))
    }

    mutating func makeCredentials() -> ICECredentials { ICECredentials(using: &generator) }

    mutating func connectionPlan(_ credentials: ICECredentials, isControlling: Bool) throws -> ConnectionPlan {
        var ice = ICEConfiguration(isControlling: isControlling)
        ice.policy = configuration.media.usesRelaysOnly ? .relayOnly : .all
        ice.servers = servers.known
        var handshake = DTLSConfiguration()
        // The short tag is for keys in descriptions; a configuration that has it alone means no more than that.
        let strong = configuration.media.suites.filter { $0 != .aesCM128HMACSHA1Short }
        if !strong.isEmpty { handshake.suites = strong }
        return ConnectionPlan(
            ice: ice, credentials: credentials, interfaces: configuration.media.interfaces,
            hasOwnSocket: isControlling, handshake: .init(try currentIdentity(), handshake))
    }

    /// The file that a call is captured in.
    ///
    /// - Parameter number: The number of the next captured call.
    /// - Returns: Nil if it is not.
    func nextCapture(number: () -> Int?) -> String? {
        guard configuration.behaviour.capture != nil, let number = number() else { return nil }
        return configuration.behaviour.capture(number: number)
    }
}

extension MediaConfiguration {
    /// What calls offer and take.
    fileprivate var negotiation: MediaNegotiation.Settings {
        var settings = MediaNegotiation.Settings()
        settings.codecs = codecs
        settings.encoder = encoder
        settings.playout = playout
        settings.suites = suites
        settings.offersWebRTC = offers == .webRTC
        if allowsPlainMedia { settings.plainMedia = offers == .plain ? .offered : .accepted }
        return settings
    }
}
