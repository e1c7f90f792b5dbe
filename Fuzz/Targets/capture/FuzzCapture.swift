import FuzzInput

/// Called by libFuzzer with each input: what a capture says between the packets, which `handset replay` reads from a file.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzCapture(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    // The first two bytes are a port, too: of any, what it tells must fit.
    if bytes.count > 1, let told = CaptureNote.format(ofPort: UInt16(bytes[0]) << 8 | UInt16(bytes[1])) {
        require(
            CaptureNote.sourcePort(format: told.format, isNoise: told.isNoise) == UInt16(bytes[0]) << 8
                | UInt16(bytes[1]),
            "a port tells a format that has this port")
    }
    guard let note = CaptureNote(parsing: bytes) else { return }
    let written = note.bytes
    // A decoder's name that is no text is longer written than read.
    if case .start = note, written.count > 300 { return }
    require(CaptureNote(parsing: written) == note, "a note reads back as written")
}
