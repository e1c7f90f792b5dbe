import Realtime
import Glibc
import Core
import SecureTransport

/// Sends the device a first packet, and waits for the first authenticated one of its own.
///
/// Blocks the calling thread, for at most 2 s.
func exchangeFirstPackets(_ local: LocalEnd, _ remote: RemoteEnd) throws {
    try sendFirstPacket(local, remote)

    var receiving = try SRTPContext(remote.key, .inbound)
    var incoming = DatagramBatch()
    let deadline = ContinuousClock.now.advanced(by: .seconds(2))
    while ContinuousClock.now < deadline {
        var readable = pollfd(fd: local.socket.descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&readable, 1, 100) >= 0 else { throw CallFailure("poll failed with errno \(errno)") }
        _ = local.socket.receive(into: &incoming)
        for index in 0..<incoming.count where isMedia(incoming.bytes(index), of: &receiving) { return }
    }
    throw CallFailure("no media of the device within 2 s of its answer")
}

/// Whether an RTP packet, and not RTCP (RFC 5761 §4), authenticates.
private func isMedia(_ datagram: consuming MutableRawSpan, of context: inout SRTPContext) -> Bool {
    guard datagram.byteCount > 1, !(192...223).contains(datagram.unsafeLoad(fromByteOffset: 1, as: UInt8.self)) else {
        return false
    }
    do {
        _ = try context.unprotect(&datagram)
        return true
    } catch {
        return false
    }
}

private func sendFirstPacket(_ local: LocalEnd, _ remote: RemoteEnd) throws {
    var sending = try SRTPContext(local.key, .outbound)
    var outgoing = DatagramBatch()
    var slot = outgoing.freeSlot()
    let ssrc = (0..<4).map { UInt8(truncatingIfNeeded: local.ssrc >> (24 - 8 * $0)) }
    let header: [UInt8] = [0x80, UInt8(LocalEnd.payloadType), 0, 1, 0, 0, 0, 0] + ssrc
    let silence: [UInt8] = [0xF8, 0xFF, 0xFE]  // Opus, 20 ms.
    for (offset, byte) in (header + silence).enumerated() {
        slot.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
    }
    guard let length = sending.protect(&slot, length: header.count + silence.count) else {
        throw CallFailure("the first packet could not be protected")
    }
    outgoing.commit(byteCount: length, by: DatagramPath(to: remote.address))
    guard local.socket.send(&outgoing) == 0 else { throw CallFailure("the first packet could not be sent") }
}
