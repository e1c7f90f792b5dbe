internal import RTP

/// Header extensions of our packets (RFC 8285). Each packet has all of them, so that headers have one size.
public struct HeaderExtensionPlan: Equatable, Sendable {
    /// The number of the extension that carries ``mid``; nil sends none.
    public var midIdentifier: UInt8?
    /// The name of our section in the descriptions (RFC 9143 §15).
    public var mid = ""
    /// The number of the extension with the audio level (RFC 6464); nil: not sent.
    public var audioLevelIdentifier: UInt8?
    /// The number of the extension that counts packets over the transport; nil sends none.
    public var transportSequenceIdentifier: UInt8?
    /// The number of that extension in the peer's packets, whose arrivals are reported to the peer; nil: not reported.
    public var remoteTransportSequenceIdentifier: UInt8?

    /// Makes a plan without extensions.
    public init() {}
}

/// Makes the extensions of each packet that is sent.
struct PacketExtensions {
    private var midIdentifier: UInt8?
    private var mid: ShortText
    private var audioLevelIdentifier: UInt8?
    private var transportSequenceIdentifier: UInt8?
    private var nextTransportSequence: UInt16 = 0
    /// Bytes that they take in each packet.
    private(set) var wireSize: Int

    init(_ plan: HeaderExtensionPlan) {
        midIdentifier = plan.midIdentifier
        mid = ShortText(plan.mid)
        audioLevelIdentifier = plan.audioLevelIdentifier
        transportSequenceIdentifier = plan.transportSequenceIdentifier
        wireSize =
            Self.make(plan.midIdentifier, mid, plan.audioLevelIdentifier, plan.transportSequenceIdentifier).wireSize
    }

    /// Other extensions from the next packet on; the transport's packets are counted on.
    @_noAllocation @_noLocks
    mutating func change(to other: PacketExtensions) {
        let sequence = nextTransportSequence
        self = other
        nextTransportSequence = sequence
    }

    /// The number over the transport of the next packet; nil if packets are not counted.
    var nextTransportNumber: UInt16? {
        @_noAllocation @_noLocks get {
            guard case .some = transportSequenceIdentifier else { return nil }
            return nextTransportSequence
        }
    }

    /// Whether packets carry their audio level.
    var hasAudioLevel: Bool {
        @_noAllocation @_noLocks get {
            guard case .some = audioLevelIdentifier else { return false }
            return true
        }
    }

    /// The extensions of the next packet.
    @_noAllocation @_noLocks
    mutating func next(_ level: AudioLevel) -> HeaderExtensionSet {
        let sequence = nextTransportSequence
        nextTransportSequence &+= 1
        return Self.make(
            midIdentifier, mid, audioLevelIdentifier, transportSequenceIdentifier, level: level, sequence: sequence)
    }

    @_noAllocation @_noLocks
    private static func make(
        _ midIdentifier: UInt8?, _ mid: ShortText, _ audioLevelIdentifier: UInt8?, _ transportIdentifier: UInt8?,
        level: AudioLevel = AudioLevel(attenuation: 127, isVoice: false), sequence: UInt16 = 0
    ) -> HeaderExtensionSet {
        var set = HeaderExtensionSet()
        if let identifier = audioLevelIdentifier { set.append(identifier, level.byte) }
        if let identifier = transportIdentifier { set.append(identifier, sequence) }
        if let identifier = midIdentifier { set.append(identifier, mid) }
        return set
    }
}
