internal import Playout
internal import RTP
package import Realtime
package import Core

/// The media thread's end of a capture: records the inputs of a call's jitter buffer, for the file thread to write.
///
/// The ring holds ``capacity`` records, some two seconds of a call. When the file thread does not keep up, records that
/// do not fit are dropped and counted, in the file and in the call's report.
package struct CaptureWriter: ~Copyable {
    /// Records on their way to the file thread, which looks every 40 ms.
    package static let capacity = 512

    private var ring: SPSCRing<CaptureRecord>.Producer
    private var checksum = SampleChecksum()
    private var patience: Int64 = 0
    private var repair: Int64 = -1
    private var isLosing: UInt32 = 0
    /// Time of the newest record. Inputs without a time of their own get the same time.
    private var last: Instant
    /// Records that found no room.
    private var lost = 0

    package init(_ ring: consuming SPSCRing<CaptureRecord>.Producer, at now: Instant) {
        self.ring = ring
        last = now
    }

    @_noAllocation @_noLocks
    mutating func note(_ record: CaptureRecord) {
        var record = record
        record.lostBefore = isLosing
        last = record.at
        if ring.push(record) {
            isLosing = 0
        } else {
            isLosing &+= 1
            lost &+= 1
        }
    }

    @_noAllocation @_noLocks
    mutating func note(_ kind: CaptureRecord.Kind, _ value: Int64) {
        var record = CaptureRecord(kind, at: last)
        record.value = value
        note(record)
    }

    /// Sound was taken for the frame at `due`.
    @_noAllocation @_noLocks
    mutating func notePull(_ samples: Span<Int16>, at due: Instant) {
        checksum.add(samples)
        var record = CaptureRecord(.pull, at: due)
        record.count = Int32(truncatingIfNeeded: samples.count)
        record.value = Int64(bitPattern: checksum.value)
        note(record)
    }

    /// Records the jitter buffer's settings if they have changed. Call it after changing them, and before each pull.
    @_noAllocation @_noLocks
    mutating func noteSettings(patience: Int64, repair: Int64?) {
        if patience != self.patience {
            self.patience = patience
            note(.patience, patience)
        }
        let repair = repair ?? -1
        if repair != self.repair {
            self.repair = repair
            note(.repair, repair)
        }
    }

    /// Records that found no room, so far.
    @_noAllocation @_noLocks
    mutating func countLost() -> Int { lost }

    /// A packet has been inserted.
    ///
    /// Looks at a view of memory in place, which neither allocates nor locks; see the end of MediaCall.swift.
    /// - Parameter timestampOffset: By how many RTP ticks a copy is older.
    @_semantics("no_performance_analysis") @inline(__always)
    mutating func note(
        _ kind: CaptureRecord.Kind, _ payload: RawSpan, _ header: RTPHeader, format: UInt8,
        timestampOffset: UInt32 = 0, arrival: Instant
    ) {
        guard var record = CaptureRecord(kind, payload, header, format: format, arrival: arrival) else { return }
        record.timestampOffset = timestampOffset
        note(record)
    }

    @_noAllocation @_noLocks
    mutating func notePassOver(_ header: RTPHeader, at arrival: Instant) {
        var record = CaptureRecord(.passOver, at: arrival)
        record.sequenceNumber = header.sequenceNumber
        record.ssrc = header.ssrc
        note(record)
    }
}
