internal import Call
internal import CallControl
internal import CallMedia
internal import SignalingClient

/// Makes the sessions of a device's calls, as it is configured now.
struct CallMaker {
    private let configuration: DeviceConfiguration
    private let traits: SignalingTraits
    private let media: SharedMedia

    init(_ configuration: DeviceConfiguration, _ traits: SignalingTraits, _ media: SharedMedia) {
        self.configuration = configuration
        self.traits = traits
        self.media = media
    }

    /// Letters and digits that nothing else has: a key that names an invite before the service has given it an id, or part of a file's
    /// name.
    static func newKey() -> String {
        var generator = SystemRandomNumberGenerator()
        return String(generator.next(), radix: 36) + String(generator.next(), radix: 36)
    }

    /// A call to users.
    ///
    /// - Parameters:
    ///   - rules: Nil for those of the section `behaviour`.
    ///   - caller: Who calls from a telephone network; nil if this device calls.
    ///   - hops: How many calls led to this one.
    ///   - transfer: What the call takes the place of at the request of `origin`, our call and its peer.
    func outgoing(
        to users: [UserID], in group: GroupID? = nil, audio: AudioBehaviour, rules: CallRules? = nil,
        timeToLive: Duration?? = .none, onlineOnly: Bool? = nil, for caller: TrunkCall? = nil,
        after hops: CallHops = CallHops(), transfer: CallTransfer.Origin? = nil,
        inPlaceOf origin: (call: CallID, peer: UserID)? = nil
    ) -> CallSession {
        var options = configuration.invites.options(
            to: users, in: group, timeToLive: timeToLive, onlineOnly: onlineOnly, IdempotencyKey(ours: Self.newKey()))
        options.trunk = caller
        options.hops = hops
        options.transfer = transfer
        return CallSession(
            nextID(), dialling: options, audio: audio, rules: rules ?? configuration.rules(for: audio), traits: traits,
            inPlaceOf: origin, timings: configuration.callTimings, using: SystemRandomNumberGenerator())
    }

    /// A call that has come in.
    ///
    /// - Parameter replaced: Our call that it replaces.
    func incoming(_ invite: ReceivedInvite, as part: CallPart, replacing replaced: CallID?) -> CallSession {
        CallSession(
            nextID(), receiving: invite, audio: part.audio, rules: part.rules, traits: traits, replacing: replaced,
            timings: configuration.callTimings, using: SystemRandomNumberGenerator())
    }

    /// A name that no call of the process has or had.
    private func nextID() -> CallID { CallID(number: media.nextCall()) }
}
