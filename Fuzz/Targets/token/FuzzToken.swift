import FuzzInput

/// Called by libFuzzer with each input: a signed token, which strangers show before anything is known of them.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzToken(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    // What the payload says is mutated as it is, and not in base64.
    let isPlain = bytes.first == UInt8(ascii: "{")
    let text = isPlain ? header + "." + base64url(bytes) + ".AAAA" : String(decoding: bytes, as: UTF8.self)
    guard let token = try? TokenText(parsing: text) else { return }
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    require(parts.count == 3, "a token has three parts")
    require(base64url(token.signature) == String(decoding: parts[2], as: UTF8.self), "a signature has one spelling")
    guard let said = try? token.payload.token() else { return }
    require(said.expires.isFinite && (said.issued ?? 0).isFinite, "a token's times are numbers")
    require((said.session?.data?.utf8.count ?? 0) <= SignedToken.maximumDataBytes, "a token's data is bounded")
    require((try? TokenPayload(said).token().session) == said.session, "what a token says can be said again")
}

private let header = base64url(Array(#"{"alg":"HS256","typ":"JWT"}"#.utf8))

private let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

private func base64url(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    var bits: UInt32 = 0
    var count: UInt32 = 0
    for byte in bytes {
        bits = bits << 8 | UInt32(byte)
        count += 8
        while count >= 6 {
            count -= 6
            text.append(alphabet[Int(bits >> count & 63)])
        }
    }
    if count > 0 { text.append(alphabet[Int(bits << (6 - count) & 63)]) }
    return String(decoding: text, as: UTF8.self)
}
