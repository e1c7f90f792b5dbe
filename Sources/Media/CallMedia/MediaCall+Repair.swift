package import Realtime
package import Core
internal import Playout

// Packets that are lost on the way, and sent again (RFC 4585 §6.2.1).
extension MediaCall {
    /// How long datagrams are handled as they come after a packet was lost, either way: 2 s. A request that waits for the
    /// next frame, and the packet that answers it, take up to 40 ms longer. A worker that waits for its socket wakes for
    /// each packet, which is why this ends with the losses.
    private static var repairNanoseconds: Int64 { @_noAllocation @_noLocks get { 2_000_000_000 } }

    /// Handles datagrams as they come for a while: packets are lost, and sent again.
    @_noAllocation @_noLocks
    mutating func watchForRepairs() {
        guard peer.repairsLoss else { return }
        repairFrames = Int(Self.repairNanoseconds / periodNanoseconds)
    }

    /// When the worker must next handle the call: for its next frame, or earlier to request missing packets.
    package var nextWakeup: Instant {
        @_noAllocation @_noLocks get {
            let frame = nextDeadline
            guard let due = requestsDueAt, due.nanoseconds < frame.nanoseconds else { return frame }
            return due
        }
    }

    /// Whether missing packets are to be asked for before the next frame.
    @_noAllocation @_noLocks
    package func areRequestsDue(at now: Instant) -> Bool {
        guard let due = requestsDueAt else { return false }
        return due.nanoseconds <= now.nanoseconds
    }

    /// Appends a request for packets of the peer that are missing, and that can still come in time, to the batch, which
    /// has room.
    @_noAllocation @_noLocks
    package mutating func sendRequestsIfDue(at now: Instant, into batch: inout DatagramBatch) {
        requestsDueAt = nil
        guard peer.repairsLoss, receives, peer.canSend, let path = peer.controlPath else { return }
        playout.repairNanoseconds = peer.repairNanoseconds(at: now)
        capture?.noteSettings(patience: playout.pullPatienceNanoseconds, repair: playout.repairNanoseconds)
        let nextPull = nextDeadline
        var number = Int64.min
        while let missing = playout.nextMissing(
            from: number, nextPull: nextPull, frameSamples: frameSamples, at: now)
        {
            number = missing.number + 1
            let left = now.nanoseconds(to: missing.dueAt)
            if peer.ask(for: missing.sequenceNumber, nanosecondsLeft: left, at: now) {
                playout.noteRequest(for: missing)
                capture?.note(.request, missing.number)
                watchForRepairs()
            }
        }
        requestsDueAt = playout.nextMissingAt
        var packet = batch.freePacket(by: path)
        let length = peer.writeRequests(into: &packet)
        batch.commitPacket(byteCount: length, by: path)
    }

    /// Appends a packet that the peer has asked for to the batch, which has room.
    ///
    /// - Returns: Whether there was one.
    @_noAllocation @_noLocks
    package mutating func sendRepair(at now: Instant, into batch: inout DatagramBatch) -> Bool {
        guard peer.repairsLoss, sends, peer.canSend, !control.isStopped, let path = peer.path else { return false }
        var packet = batch.freePacket(by: path)
        let length = peer.writeRepair(at: now, into: &packet)
        return batch.commitPacket(byteCount: length, by: path)
    }
}
