internal import CallMedia
internal import Realtime
internal import Core

/// Media that arrived before the keys of its call: the peer ended the handshake first, and its first packets often come in the same
/// batch as the last datagram of the handshake. A worker keeps it until the keys are there, for 2 s at most.
///
/// While ``DatagramBatch/capacity`` datagrams are kept, further ones are dropped. Each is counted as ``DropCounters/early`` until it is
/// taken. All memory is taken at creation, and untouched until it is needed.
struct EarlyDatagrams: ~Copyable {
    private static var longestNanoseconds: Int64 { @_noAllocation @_noLocks get { 2_000_000_000 } }

    private struct Note: BitwiseCopyable {
        var isPending = false
        var isControl = false
        var arrival = Instant.zero
        /// Where it is counted as early.
        var call = MediaCallID(rawValue: 0)
    }

    private var datagrams = DatagramBatch()
    private var notes = InlineArray<64, Note>(repeating: Note())

    /// Keeps a datagram that a call has refused, and counted, as early.
    @_noAllocation @_noLocks
    mutating func keep(
        _ datagram: inout MutableRawSpan, isControl: Bool, from origin: DatagramPath, arrival: Instant,
        of call: MediaCallID
    ) {
        clearIfDone(at: arrival)
        let (length, number) = (datagram.byteCount, datagrams.count)
        guard !datagrams.isFull, number < notes.count, length <= DatagramBatch.slotBytes else { return }
        var copy = DatagramCopy(&datagram)
        var slot = datagrams.freeSlot()
        copy.restore(&slot)
        datagrams.commit(byteCount: length, by: origin)
        notes[number] = Note(isPending: true, isControl: isControl, arrival: arrival, call: call)
    }

    /// Gives the call at `index`, which has keys from now on, those datagrams that are its peer's, in the order of their arrival.
    @_noAllocation @_noLocks
    mutating func give(to index: Int, of calls: borrowing RouteTable, at now: Instant) {
        clearIfDone(at: now)
        for number in 0..<datagrams.count {
            let note = notes[number]
            guard note.isPending, !Self.isOld(note, at: now) else { continue }
            let origin = WorkerLoop.origin(of: number, in: datagrams)
            var datagram = datagrams.bytes(number)
            // What another call's keys do not fit may be half decrypted.
            var copy = DatagramCopy(&datagram)
            let refusal = unsafe calls[index].pointee.receive(
                &datagram, isControl: note.isControl, from: origin, arrival: note.arrival)
            guard case .none = refusal else {
                var kept = datagrams.bytes(number)
                copy.restore(&kept)
                continue
            }
            notes[number].isPending = false
            if let counting = calls.index(of: note.call) { unsafe calls[counting].pointee.discountEarly() }
        }
    }

    /// Makes room once nothing that is kept can be taken any more.
    @_noAllocation @_noLocks
    private mutating func clearIfDone(at now: Instant) {
        for number in 0..<datagrams.count where notes[number].isPending && !Self.isOld(notes[number], at: now) {
            return
        }
        datagrams.clear()
    }

    @_noAllocation @_noLocks
    private static func isOld(_ note: Note, at now: Instant) -> Bool {
        note.arrival.nanoseconds(to: now) > longestNanoseconds
    }
}
