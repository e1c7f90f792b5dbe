import BotWire
import FuzzInput
import FuzzWire

/// Called by libFuzzer with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzPlivo(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    fuzz(start, count) { fuzz(PlivoWire(), $0) }
}
