internal import RTP

/// Extends the sequence numbers of a recorded stream as they were extended in the call: a call starts over with each stream
/// that takes over.
struct StreamNumbers {
    private var ssrc: UInt32?
    private var unwrapper = SequenceUnwrapper()

    mutating func extend(_ sequenceNumber: UInt16, of ssrc: UInt32) -> Int64 {
        if ssrc != self.ssrc { unwrapper = SequenceUnwrapper() }
        self.ssrc = ssrc
        return unwrapper.unwrap(sequenceNumber)
    }
}
