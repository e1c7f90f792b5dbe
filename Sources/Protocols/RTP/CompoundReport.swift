import Core

/// A compound RTCP packet to be sent: one report, the canonical name, and a goodbye if it is the last (RFC 3550 §6.1).
public struct CompoundReport: Sendable {
    /// SSRC of the sender.
    public var ssrc: UInt32
    /// The sender's part; with it a sender report is written, without it a receiver report.
    public var sender: SenderInfo?
    /// The block on the received stream; a call between two has at most one.
    public var block: ReportBlock?
    /// Goes into every compound packet (RFC 3550 §6.5.1).
    public var canonicalName: ShortText
    /// Says goodbye, with a reason that may be empty.
    public var goodbye: ShortText?

    /// Enough bytes for any compound packet, of which the two texts may take 510.
    public static var maximumSize: Int { @_noAllocation @_noLocks get { 600 } }

    /// Makes a report.
    @_noAllocation @_noLocks
    public init(
        ssrc: UInt32, sender: SenderInfo?, block: ReportBlock?, canonicalName: ShortText,
        goodbye: ShortText? = nil
    ) {
        self.ssrc = ssrc
        self.sender = sender
        self.block = block
        self.canonicalName = canonicalName
        self.goodbye = goodbye
    }

    /// Writes the compound packet at the front of `datagram`.
    ///
    /// - Returns: Bytes written, or zero if it does not fit.
    @_noAllocation @_noLocks
    public func write(into datagram: inout MutableRawSpan) -> Int {
        let end = datagram.byteCount
        var writer = ByteWriter(datagram._mutatingExtracting(0..<end))
        writeReport(into: &writer)
        writeDescription(into: &writer)
        if let goodbye { writeGoodbye(goodbye, into: &writer) }
        return writer.overflowed ? 0 : writer.count
    }

    @_noAllocation @_noLocks
    private func writeReport(into writer: inout ByteWriter) {
        var blocks = 0
        if case .some = block { blocks = 1 }
        var isSender = false
        if case .some = sender { isSender = true }
        writeHeader(
            type: isSender ? 200 : 201, count: blocks,
            bodySize: 4 + (isSender ? 20 : 0) + blocks * ReportBlock.size, into: &writer)
        writer.write(ssrc)
        if let sender { sender.write(into: &writer) }
        if let block { block.write(into: &writer) }
    }

    @_noAllocation @_noLocks
    private func writeDescription(into writer: inout ByteWriter) {
        // SSRC, item type, length, text, and at least one zero that ends the list.
        let unpadded = 4 + 2 + canonicalName.count + 1
        let padded = (unpadded + 3) / 4 * 4
        writeHeader(type: 202, count: 1, bodySize: padded, into: &writer)
        writer.write(ssrc)
        writer.write(1 as UInt8)
        canonicalName.write(into: &writer)
        writeZeros(padded - unpadded + 1, into: &writer)
    }

    @_noAllocation @_noLocks
    private func writeGoodbye(_ reason: ShortText, into writer: inout ByteWriter) {
        let unpadded = 4 + (reason.count == 0 ? 0 : 1 + reason.count)
        let padded = (unpadded + 3) / 4 * 4
        writeHeader(type: 203, count: 1, bodySize: padded, into: &writer)
        writer.write(ssrc)
        if reason.count > 0 { reason.write(into: &writer) }
        writeZeros(padded - unpadded, into: &writer)
    }

    @_noAllocation @_noLocks
    private func writeHeader(type: UInt8, count: Int, bodySize: Int, into writer: inout ByteWriter) {
        writer.write(0x80 | UInt8(truncatingIfNeeded: count))
        writer.write(type)
        writer.write(UInt16(truncatingIfNeeded: bodySize / 4))
    }

    @_noAllocation @_noLocks
    private func writeZeros(_ count: Int, into writer: inout ByteWriter) {
        var left = count
        while left > 0 {
            writer.write(0 as UInt8)
            left -= 1
        }
    }
}
