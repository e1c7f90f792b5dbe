internal import Datagrams
internal import NetworkAddress
internal import SecureTransport
internal import Timekeeping

// Replacement of keys during a call (RFC 8842 §5.5: packets of both associations are accepted meanwhile).
extension PeerSession {
    /// How long packets with the keys of before are taken: the way of the slowest, and the time in which one side has the
    /// new keys and the other not yet.
    static var formerKeysNanoseconds: Int64 { @_noAllocation @_noLocks get { 3_000_000_000 } }

    /// Authenticates a packet of the peer and decrypts it in place.
    ///
    /// - Returns: The length of the plain packet; nil while there are no keys.
    @_noAllocation @_noLocks
    mutating func takeOff(
        _ datagram: inout MutableRawSpan, isControl: Bool, at arrival: Instant
    ) throws(SRTPContext.Failure) -> Int? {
        guard arrival.nanoseconds < formerUntil.nanoseconds, datagram.byteCount <= DatagramCopy.capacity else {
            return isControl ? try inbound?.unprotectControl(&datagram) : try inbound?.unprotect(&datagram)
        }
        // A failure may leave the packet half decrypted.
        var copy = DatagramCopy(&datagram)
        do throws(SRTPContext.Failure) {
            return isControl ? try inbound?.unprotectControl(&datagram) : try inbound?.unprotect(&datagram)
        } catch {
            guard case .authentication = error else { throw error }
            copy.restore(&datagram)
            return isControl
                ? try formerInbound?.unprotectControl(&datagram) : try formerInbound?.unprotect(&datagram)
        }
    }
}
