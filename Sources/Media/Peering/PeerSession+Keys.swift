internal import SecureTransport
internal import Timekeeping

// Keys that give way to others in a call that stands (RFC 8842 §5.5: both associations are heard meanwhile).
extension PeerSession {
    /// How long packets with the keys of before are taken: the way of the slowest, and the time in which one side has the
    /// new keys and the other not yet.
    static var formerKeysNanoseconds: Int64 { @_noAllocation @_noLocks get { 3_000_000_000 } }

    /// The longest datagram that is tried with the keys of before.
    private static var longestRetried: Int { @_noAllocation @_noLocks get { 1_500 } }

    /// Checks a packet of the peer's and takes its protection off in place.
    ///
    /// - Returns: The length of the plain packet; nil while there are no keys.
    @_noAllocation @_noLocks
    mutating func takeOff(
        _ datagram: inout MutableRawSpan, isControl: Bool, at arrival: Instant
    ) throws(SRTPContext.Failure) -> Int? {
        guard arrival.nanoseconds < formerUntil.nanoseconds, datagram.byteCount <= Self.longestRetried else {
            return isControl ? try inbound?.unprotectControl(&datagram) : try inbound?.unprotect(&datagram)
        }
        // What fails may leave the packet half decrypted.
        var copy = InlineArray<1_500, UInt8>(repeating: 0)
        keep(datagram, in: &copy)
        do throws(SRTPContext.Failure) {
            return isControl ? try inbound?.unprotectControl(&datagram) : try inbound?.unprotect(&datagram)
        } catch {
            guard case .authentication = error else { throw error }
            putBack(copy, into: &datagram)
            return isControl
                ? try formerInbound?.unprotectControl(&datagram) : try formerInbound?.unprotect(&datagram)
        }
    }
}

// The two below copy memory, which neither allocates nor locks.

@_semantics("no_performance_analysis") @inline(__always)
private func keep(_ datagram: borrowing MutableRawSpan, in copy: inout InlineArray<1_500, UInt8>) {
    for index in 0..<datagram.byteCount {
        copy[index] = unsafe datagram.unsafeLoad(fromByteOffset: index, as: UInt8.self)
    }
}

@_semantics("no_performance_analysis") @inline(__always)
private func putBack(_ copy: borrowing InlineArray<1_500, UInt8>, into datagram: inout MutableRawSpan) {
    for index in 0..<datagram.byteCount { datagram.storeBytes(of: copy[index], toByteOffset: index, as: UInt8.self) }
}
