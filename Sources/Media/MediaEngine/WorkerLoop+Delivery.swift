internal import CallMedia
internal import Realtime
internal import Core

// Delivery of received datagrams to their calls.
extension WorkerLoop {
    /// The result of delivering a datagram.
    enum Delivery: BitwiseCopyable {
        /// The call at this position got it.
        case call(Int)
        /// It is STUN, DTLS, or a TURN server's.
        case notMedia
        /// Counted and dropped.
        case dropped
    }

    /// How often, in one turn of the worker, datagrams may be tried on calls to which they probably do not belong: a
    /// flood costs no more than this many checks, some 100 µs.
    static var mostGuesses: Int { @_noAllocation @_noLocks get { 64 } }

    @_noAllocation @_noLocks
    static func origin(of index: Int, in batch: borrowing DatagramBatch) -> DatagramPath {
        DatagramPath(socket: batch.socket(index), local: batch.localAddress(index), remote: batch.address(index))
    }

    /// Gives a datagram of media to the call that it belongs to.
    @_noAllocation @_noLocks
    static func deliver(
        _ batch: inout DatagramBatch, _ index: Int, to calls: borrowing RouteTable, _ early: inout EarlyDatagrams,
        _ guesses: inout Int, _ counters: inout WorkerCounters
    ) -> Delivery {
        let (origin, arrival, truncated) = (
            origin(of: index, in: batch), batch.arrival(index), batch.isTruncated(index)
        )
        var datagram = batch.bytes(index)
        guard !truncated else {
            counters.datagramsNotMedia += 1
            return .dropped
        }
        let turn = counters.datagramsReceived &+ index
        var candidates = RouteCandidates()
        let isControl: Bool
        switch demultiplex(at: datagram) {
        case .media(let ssrc, let control):
            isControl = control
            if let position = calls.index(ownSocket: origin.socket) {
                candidates = RouteCandidates(only: position)
            } else {
                candidates = calls.candidates(ssrc: ssrc, source: origin.remote, turn: turn, mayGuess: guesses > 0)
            }
        case .relayedMedia(let ssrc, let control, let start, let end, let channel):
            isControl = control
            if let channel, let position = calls.index(slot: origin.socket, channel: channel) {
                candidates = RouteCandidates(only: position)
            } else {
                // A peer with two ways may send by another than we do.
                candidates = calls.candidates(ssrc: ssrc, source: origin.remote, turn: turn, mayGuess: guesses > 0)
            }
            datagram = datagram._consumingExtracting(start..<end)
        case .connectivity: return .notMedia
        case .unknown:
            counters.datagramsNotMedia += 1
            return .dropped
        }
        guard candidates.count > 0 else {
            counters.datagramsUnknown += 1
            return .dropped
        }
        if candidates.isGuess { guesses -= 1 }
        return offer(
            &datagram, isControl: isControl, from: origin, arrival, to: candidates, of: calls, &early, &guesses)
    }

    /// Offers a datagram to calls, one after the other, until one takes it. If none does, the first counts it.
    @_noAllocation @_noLocks
    private static func offer(
        _ datagram: inout MutableRawSpan, isControl: Bool, from origin: DatagramPath, _ arrival: Instant,
        to candidates: RouteCandidates, of calls: borrowing RouteTable, _ early: inout EarlyDatagrams,
        _ guesses: inout Int
    ) -> Delivery {
        let first = candidates[0]
        guard candidates.count > 1, guesses > 0 else {
            let refusal = unsafe calls[first].pointee.receive(
                &datagram, isControl: isControl, from: origin, arrival: arrival)
            guard let refusal else { return .call(first) }
            unsafe calls[first].pointee.count(refusal)
            if case .early = refusal {
                let id = calls.id(at: first)
                early.keep(&datagram, isControl: isControl, from: origin, arrival: arrival, of: id)
            }
            return .dropped
        }
        // A check that fails may leave the datagram half decrypted.
        var copy = DatagramCopy(&datagram)
        let refused = unsafe calls[first].pointee.receive(
            &datagram, isControl: isControl, from: origin, arrival: arrival)
        guard let refusal = refused else { return .call(first) }
        for number in 1..<candidates.count where guesses > 0 {
            guesses -= 1
            copy.restore(&datagram)
            let position = candidates[number]
            let other = unsafe calls[position].pointee.receive(
                &datagram, isControl: isControl, from: origin, arrival: arrival)
            guard case .some = other else { return .call(position) }
        }
        unsafe calls[first].pointee.count(refusal)
        if case .early = refusal {
            copy.restore(&datagram)
            let id = calls.id(at: first)
            early.keep(&datagram, isControl: isControl, from: origin, arrival: arrival, of: id)
        }
        return .dropped
    }
}
