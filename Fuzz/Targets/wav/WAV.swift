import AudioKit
import FuzzInput

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzWAV(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    do {
        let header = try WAVHeader(parsing: bytes.span.bytes)
        require((1...WAVHeader.maximumChannels).contains(header.channels), "channels are within bounds")
        require(WAVHeader.sampleRates.contains(header.sampleRate), "the rate is within bounds")
        require(header.dataOffset >= 12 && header.dataOffset <= bytes.count, "samples begin inside or at the end")
        require((header.dataByteCount ?? 0) >= 0, "there are not less than no samples")
    } catch {
        require(!error.description.isEmpty, "an error says something")
        if let needed = error.bytesNeeded { require(needed > bytes.count, "only more bytes than there are are needed") }
    }
}
