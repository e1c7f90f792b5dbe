/// Finds out when a call can carry media: it has a path, and keys if packets are protected.
///
/// A peer with neither ICE nor a handshake is where its description says, so that its call can carry media at once; whether
/// the peer is there is known only from its packets and from signaling.
struct MediaReadiness: BitwiseCopyable {
    private let findsPath: Bool
    private let agreesOnKeys: Bool
    private var needsPath: Bool
    private var needsKeys: Bool
    private(set) var isReady: Bool

    init(_ plan: PeerPlan) {
        if case .direct = plan.transport { findsPath = false } else { findsPath = true }
        agreesOnKeys = plan.protection == .handshake
        (needsPath, needsKeys) = (findsPath, agreesOnKeys)
        isReady = !findsPath && !agreesOnKeys
    }

    /// There is a path, or none any more.
    ///
    /// - Returns: Whether the call has become ready with it.
    @_noAllocation @_noLocks
    mutating func noted(path: Bool) -> Bool {
        needsPath = findsPath && !path
        return update()
    }

    /// There are keys.
    ///
    /// - Returns: Whether the call has become ready with them.
    @_noAllocation @_noLocks
    mutating func notedKeys() -> Bool {
        needsKeys = false
        return update()
    }

    /// Another one is at the other end, to which path and keys are still to be found.
    ///
    /// - Returns: Whether the call is ready for it at once.
    @_noAllocation @_noLocks
    mutating func begin() -> Bool {
        (needsPath, needsKeys, isReady) = (findsPath, agreesOnKeys, false)
        return update()
    }

    @_noAllocation @_noLocks
    private mutating func update() -> Bool {
        guard !isReady, !needsPath, !needsKeys else { return false }
        isReady = true
        return true
    }
}
