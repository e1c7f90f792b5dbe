/// Properties of an Opus packet (RFC 6716 §3), read without decoding it. No packet, however broken, traps.
public enum OpusPacket {
    /// The most sound one packet can hold: 120 ms, in samples of each channel at 48 kHz.
    public static var maximumSamples: Int { @_noAllocation @_noLocks get { 5_760 } }

    /// Samples of each channel at 48 kHz in `packet`; 0 if it is not an Opus packet.
    @_noAllocation @_noLocks
    public static func samples(in packet: RawSpan) -> Int {
        guard packet.byteCount > 0 else { return 0 }
        let toc = packet[0]
        let samples = samplesInFrame(toc) &* frames(in: packet)
        return samples <= maximumSamples ? samples : 0
    }

    /// Samples of each channel in one frame of `packet`: the most that its FEC copy can restore; 0 if empty.
    @_noAllocation @_noLocks
    public static func samplesInFrame(of packet: RawSpan) -> Int {
        packet.byteCount > 0 ? samplesInFrame(packet[0]) : 0
    }

    /// Whether an encoder in discontinuous transmission made it: too small to hold sound (RFC 7587 §3.1.3).
    @_noAllocation @_noLocks
    public static func isDiscontinuous(_ packet: RawSpan) -> Bool { packet.byteCount <= 2 }

    /// Whether the packet's first frame holds a coarse copy of the frame before it (the LBRR flags, RFC 6716 §4.2.3).
    @_noAllocation @_noLocks
    public static func hasFEC(_ packet: RawSpan) -> Bool {
        guard packet.byteCount > 0 else { return false }
        let toc = packet[0]
        guard toc & 0x80 == 0 else { return false }  // CELT only: no speech half, no copy.
        let start = firstFrameOffset(in: packet)
        guard start < packet.byteCount else { return false }
        // The speech half codes 20 ms at a time, and begins with a voice flag for each, then the LBRR flag.
        let parts = max(samplesInFrame(toc) / 960, 1)
        let flags = Int(packet[start])
        let isStereo = toc & 0x04 != 0
        if flags >> (7 &- parts) & 1 == 1 { return true }
        return isStereo ? flags >> (6 &- 2 &* parts) & 1 == 1 : false
    }

    /// Frame sizes by configuration number (RFC 6716 §3.1, table 2).
    @_noAllocation @_noLocks
    private static func samplesInFrame(_ toc: UInt8) -> Int {
        let size = Int(toc >> 3) & 3
        if toc & 0x80 != 0 { return 120 << size }  // CELT: 2.5, 5, 10, 20 ms.
        if toc & 0x60 == 0x60 { return size & 1 == 0 ? 480 : 960 }  // Hybrid: 10, 20 ms.
        return size == 3 ? 2_880 : 480 << size  // SILK: 10, 20, 40, 60 ms.
    }

    @_noAllocation @_noLocks
    private static func frames(in packet: RawSpan) -> Int {
        switch packet[0] & 3 {
        case 0: 1
        case 1, 2: 2
        default: packet.byteCount > 1 ? Int(packet[1] & 0x3F) : 0
        }
    }

    /// Where the first frame's bytes begin (RFC 6716 §3.2); past the end if the packet is cut short.
    @_noAllocation @_noLocks
    private static func firstFrameOffset(in packet: RawSpan) -> Int {
        let code = packet[0] & 3
        if code < 2 { return 1 }
        if code == 2 { return 1 &+ sizeFieldLength(in: packet, at: 1) }
        guard packet.byteCount > 1 else { return packet.byteCount }
        let isVariable = packet[1] & 0x80 != 0
        var offset = 2
        if packet[1] & 0x40 != 0 {  // Padding: each 255 says that another length byte follows.
            while offset < packet.byteCount, packet[offset] == 255 { offset &+= 1 }
            offset &+= 1
        }
        guard isVariable else { return offset }
        for _ in 1..<max(Int(packet[1] & 0x3F), 1) { offset &+= sizeFieldLength(in: packet, at: offset) }
        return offset
    }

    @_noAllocation @_noLocks
    private static func sizeFieldLength(in packet: RawSpan, at offset: Int) -> Int {
        guard offset < packet.byteCount else { return 1 }
        return packet[offset] >= 252 ? 2 : 1
    }
}

extension RawSpan {
    /// The byte at `offset`, checked.
    fileprivate subscript(_ offset: Int) -> UInt8 {
        @_noAllocation @_noLocks get {
            let isInside = offset >= 0 ? offset < byteCount : false
            precondition(isInside, "offset within the packet")
            return unsafe unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
        }
    }
}
