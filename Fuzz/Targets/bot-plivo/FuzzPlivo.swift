import BotWire
import FuzzInput
import FuzzWire

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzPlivo(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    fuzz(start, count) { fuzz(PlivoWire(), $0) }
}
