internal import Realtime
public import SecureTransport
internal import Core

/// The two directions' contexts of a call, made where allocation is allowed and handed to the media thread.
///
/// A direction whose key stays has none: its context counts how often the sequence numbers have begun again, and one that
/// counted from zero would use the same key stream twice, and the other side would not understand it (RFC 3711 §3.3.1).
public struct SRTPPair: ~Copyable {
    fileprivate var inbound: SRTPContext?
    fileprivate var outbound: SRTPContext?
    fileprivate let endsFormer: Bool
    /// The peer may not have its keys yet, so that it cannot decrypt a packet that is sent now.
    let precedesPeer: Bool

    /// Makes contexts for the keys that are new.
    ///
    /// - Parameters:
    ///   - send: Nil keeps the one in use, and so does `receive`.
    ///   - endsFormer: The remote party has changed, so packets with the former key are dropped.
    ///   - precedesPeer: The peer may not have its keys yet: its first packet shows that it has.
    public init(
        send: SRTPKey?, receive: SRTPKey?, endsFormer: Bool = false, precedesPeer: Bool = false
    ) throws(SRTPError) {
        if let send { outbound = try SRTPContext(send, .outbound) }
        if let receive { inbound = try SRTPContext(receive, .inbound) }
        self.endsFormer = endsFormer
        self.precedesPeer = precedesPeer
    }

    fileprivate var hasInbound: Bool {
        @_noAllocation @_noLocks get { inbound != nil }
    }
    fileprivate var hasOutbound: Bool {
        @_noAllocation @_noLocks get { outbound != nil }
    }
}

/// The SRTP contexts of one call, and their replacement by others while the call lasts.
///
/// After a change of keys the peer's packets are accepted under the former keys too (RFC 8842 §5.5), for as long as the
/// slowest packet travels and one side may have the new keys before the other.
struct MediaProtection: ~Copyable {
    /// Whether packets are protected: without keys yet, none is sent or accepted.
    let isRequired: Bool
    private var keys: Keys
    private var inbound: SRTPContext?
    private var outbound: SRTPContext?
    /// What the peer's packets were protected with before the keys in use.
    private var formerInbound: SRTPContext?

    private enum Keys: BitwiseCopyable {
        case none
        case installed
        /// Others were installed before, and the peer's packets are accepted under those until then.
        case replaced(formerUntil: Instant)
    }

    /// How long the former keys are accepted.
    private static var overlapNanoseconds: Int64 { @_noAllocation @_noLocks get { 3_000_000_000 } }

    init(_ plan: PeerPlan.Protection) throws(SRTPError) {
        switch plan {
        case .plain: (isRequired, keys) = (false, .none)
        case .keys(let send, let receive):
            inbound = try SRTPContext(receive, .inbound)
            outbound = try SRTPContext(send, .outbound)
            (isRequired, keys) = (true, .installed)
        case .handshake: (isRequired, keys) = (true, .none)
        }
    }

    /// Whether a packet can be protected, if it has to be.
    var isReady: Bool {
        @_noAllocation @_noLocks get {
            guard case .none = keys else { return true }
            return !isRequired
        }
    }

    /// Protects with these contexts from now on, and leaves those that are not needed any more in their place, to be freed
    /// elsewhere.
    @_noAllocation @_noLocks
    mutating func install(_ pair: inout SRTPPair, at now: Instant) {
        if pair.hasOutbound { exchange(&outbound, &pair.outbound) }
        guard pair.hasInbound else { return }
        exchange(&inbound, &pair.inbound)
        if pair.endsFormer {
            keys = .installed
            return
        }
        exchange(&formerInbound, &pair.inbound)
        switch keys {
        case .none: keys = .installed
        case .installed, .replaced:
            keys = .replaced(formerUntil: now.advanced(byNanoseconds: Self.overlapNanoseconds))
        }
    }

    /// Protects the RTP packet in the first `length` bytes, in place.
    ///
    /// - Returns: Its length then; 0 if it cannot be protected.
    @_noAllocation @_noLocks
    mutating func protect(_ packet: inout MutableRawSpan, length: Int) -> Int {
        isRequired ? outbound?.protect(&packet, length: length) ?? 0 : length
    }

    /// As ``protect(_:length:)``, for RTCP.
    @_noAllocation @_noLocks
    mutating func protectControl(_ packet: inout MutableRawSpan, length: Int) -> Int {
        isRequired ? outbound?.protectControl(&packet, length: length) ?? 0 : length
    }

    /// Checks a packet of the peer and removes its protection, in place.
    ///
    /// - Parameter heard: The SSRC of the stream that is heard.
    /// - Returns: The length of the plain packet; nil while there are no keys.
    @_noAllocation @_noLocks
    mutating func unprotect(
        _ datagram: inout MutableRawSpan, isControl: Bool, keeping heard: UInt32?, at arrival: Instant
    ) throws(SRTPContext.Failure) -> Int? {
        guard isRequired else { return datagram.byteCount }
        guard case .replaced(let formerUntil) = keys, arrival.nanoseconds < formerUntil.nanoseconds,
            datagram.byteCount <= DatagramCopy.capacity
        else {
            return isControl
                ? try inbound?.unprotectControl(&datagram, keeping: heard)
                : try inbound?.unprotect(&datagram, keeping: heard)
        }
        // What fails may leave the packet half decrypted.
        var copy = DatagramCopy(&datagram)
        do throws(SRTPContext.Failure) {
            return isControl
                ? try inbound?.unprotectControl(&datagram, keeping: heard)
                : try inbound?.unprotect(&datagram, keeping: heard)
        } catch {
            guard case .authentication = error else { throw error }
            copy.restore(&datagram)
            return isControl
                ? try formerInbound?.unprotectControl(&datagram, keeping: heard)
                : try formerInbound?.unprotect(&datagram, keeping: heard)
        }
    }
}

// Swaps in place: the contexts are freed by neither.
@_semantics("no_performance_analysis") @inline(__always)
private func exchange(_ one: inout SRTPContext?, _ other: inout SRTPContext?) { swap(&one, &other) }
