internal import Datagrams
internal import Peering
internal import Playout
internal import Timekeeping

// Packets that are lost on the way, and sent again (RFC 4585 §6.2.1).
extension MediaCall {
    /// Appends a request for packets of the peer that are missing, and that can still come in time, to the batch, which
    /// has room.
    @_noAllocation @_noLocks
    mutating func sendRequestsIfDue(at now: Instant, into batch: inout DatagramBatch) {
        guard peer.repairsLoss, receives, peer.canSend, let path = peer.controlPath else { return }
        playout.repairNanoseconds = peer.repairNanoseconds(at: now)
        let nextPull = nextDeadline
        var number = Int64.min
        while let missing = playout.nextMissing(
            from: number, nextPull: nextPull, frameSamples: frameSamples, at: now)
        {
            number = missing.number + 1
            let left = now.nanoseconds(to: missing.dueAt)
            if peer.ask(for: missing.sequenceNumber, nanosecondsLeft: left, at: now) {
                playout.noteRequest(for: missing)
            }
        }
        var slot = batch.freeSlot()
        var packet = slot._mutatingExtracting(path.prefixBytes...)
        let length = peer.writeRequests(into: &packet)
        send(length, by: path, batch: &batch)
    }

    /// Appends a packet that the peer has asked for to the batch, which has room.
    ///
    /// - Returns: Whether there was one.
    @_noAllocation @_noLocks
    mutating func sendRepair(at now: Instant, into batch: inout DatagramBatch) -> Bool {
        guard peer.repairsLoss, sends, peer.canSend, !control.isStopped, let path = peer.path else { return false }
        var slot = batch.freeSlot()
        var packet = slot._mutatingExtracting(path.prefixBytes...)
        let length = peer.writeRepair(at: now, into: &packet)
        send(length, by: path, batch: &batch)
        return length > 0
    }
}
