import BotWire
import FuzzInput
import FuzzWire

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzRealtime(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    fuzz(start, count) {
        fuzz(RealtimeWire(.init(speaksFirst: true, hangUpFunction: "end_call")), $0)
        fuzz(RealtimeWire(.init(format: .pcmu, version: .beta)), $0)
    }
}
