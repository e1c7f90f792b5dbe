import AudioKit
import FuzzInput

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzNoise(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    guard let noise = ComfortNoise(bytes.span) else {
        require(bytes.isEmpty, "only an empty payload is none")
        return
    }
    var generator = ComfortNoiseGenerator(seed: 1)
    generator.set(noise)
    var samples = [Int16](repeating: 0, count: 960)
    var span = samples.mutableSpan
    generator.fill(&span)
    let measured = ComfortNoise(measuring: samples.span, order: noise.order)
    require(measured.order <= ComfortNoise.maximumOrder, "there are no more coefficients than can be written")
    var payload = [UInt8](repeating: 0, count: 13)
    var out = payload.mutableSpan
    require(noise.write(into: &out) == noise.order + 1, "a payload is written whole")
    for law in [G711.muLaw, .aLaw] {
        var decoded = [Int16](repeating: 0, count: bytes.count)
        var target = decoded.mutableSpan
        require(law.decode(bytes.span, into: &target) == bytes.count, "each byte is a sample")
    }
}
