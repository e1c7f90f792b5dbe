internal import Core

/// Bounds what is sent to an address from which nothing has come: without ICE and DTLS it is only what a description says, and a
/// stranger's may name any host.
///
/// At first ``bytes`` go out, which is enough for a translator or a relay to learn where our sound comes from, and from then on
/// one packet every five seconds. What else would be sent is dropped; media time continues.
struct SoundLimit: BitwiseCopyable {
    /// Bytes of RTP that go out at first: 0.2 s of G.711.
    static var bytes: Int { @_noAllocation @_noLocks get { 2_000 } }
    /// How far apart packets are after that.
    static var intervalNanoseconds: Int64 { @_noAllocation @_noLocks get { 5_000_000_000 } }

    private let condition: MediaCallPlan.SoundCondition
    /// Whether the limit applies.
    private(set) var applies: Bool
    private var sentBytes = 0
    private var sentAt = Instant(nanoseconds: 0)

    init(_ condition: MediaCallPlan.SoundCondition) {
        self.condition = condition
        applies = condition != .none
    }

    /// Whether a packet may go out.
    @_noAllocation @_noLocks
    func allows(at now: Instant) -> Bool {
        !applies || sentBytes < Self.bytes || sentAt.nanoseconds(to: now) >= Self.intervalNanoseconds
    }

    /// A packet goes out.
    @_noAllocation @_noLocks
    mutating func sent(bytes: Int, at now: Instant) {
        guard applies else { return }
        sentBytes += bytes
        sentAt = now
    }

    /// A packet of the peer has come in: from where our sound goes, or from another port there.
    @_noAllocation @_noLocks
    mutating func received(from source: SocketAddress, soundGoesTo remote: SocketAddress?) {
        guard applies, let remote, source.hasSameHost(as: remote) else { return }
        applies = false
    }

    /// The peer has shown by signaling that it is there.
    @_noAllocation @_noLocks
    mutating func lift() { applies = false }

    /// Our sound goes to another host, which a later description names, or an earlier one after a guess.
    @_noAllocation @_noLocks
    mutating func redirected() {
        guard case .heard = condition else { return }
        (applies, sentBytes) = (true, 0)
    }
}
