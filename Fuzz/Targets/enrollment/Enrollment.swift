import Enrollment
import FuzzInput

/// Called by libFuzzer with each input: an enrolment code, which people copy from somewhere, and the file of a device's key.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzEnrollment(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    for text in [text, "handset://\(text)", "handset://host:1/00000000000000000000/\(text)"] {
        guard let code = try? EnrollmentCode(text) else { continue }
        require((try? EnrollmentCode(code.text)) == code, "a code is read as it is written")
        require((1...65_535).contains(code.port) && !code.host.isEmpty, "a code names a host and a port")
        require(!"\(code)".contains(code.secret.characters), "a description shows no secret")
    }
    if let seed = KeyFile.seed(in: text) {
        require(
            seed.count == 32 && KeyFile.seed(in: KeyFile.text(seed: seed)) == seed, "a key is read as it is written")
    }
    if let key = DeviceKeyText(text) { require(DeviceKeyText(key.text) == key, "a public key has one spelling") }
}
