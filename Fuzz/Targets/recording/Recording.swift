import FuzzInput
import RTP

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzRecording(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    guard let recording = try? PacketRecording(parsing: bytes) else { return }
    let total = recording.packets.reduce(0) { $0 + $1.bytes.count }
    require(total < bytes.count, "packets are not longer than their file")
    for packet in recording.packets where !packet.bytes.isEmpty {
        let offset = max(0, packet.offsetNanoseconds)
        guard let record = RTPDumpWriter.record(packet.bytes, offsetNanoseconds: offset, isRTCP: false) else {
            require(packet.bytes.count > RTPDumpWriter.maximumPacketSize, "what fits is written")
            continue
        }
        let file = RTPDumpWriter.header(unixMilliseconds: 0) + record
        require(
            (try? PacketRecording(parsing: file))?.packets.first?.bytes == packet.bytes,
            "a packet reads back as written")
    }
}
