import Core
import SecureTransport

/// The device's side of one call's media, as its answer describes it.
struct RemoteEnd: Sendable {
    let address: SocketAddress
    let key: SRTPKey

    /// Reads an answer to a ``LocalEnd/offer`` with `suite`.
    init(answer: String, suite: SRTPSuite) throws {
        var host: Substring?
        var port: UInt16?
        var key: SRTPKey?
        for line in answer.split(whereSeparator: \.isNewline) {
            let words = line.split(separator: " ")
            if line.hasPrefix("c=IN IP"), words.count == 3 { host = words[2] }
            if line.hasPrefix("m=audio "), words.count >= 4 { port = UInt16(words[1]) }
            if line.hasPrefix("a=crypto:"), words.count >= 3, words[1] == suite.rawValue {
                let material = words[2].dropFirst("inline:".count).split(separator: "|").first ?? ""
                key = SRTPKey(suite: suite, base64: material)
            }
        }
        guard let host, let port, port > 0, let address = SocketAddress(host: String(host), port: port), let key else {
            throw CallFailure("the answer has no audio, address or \(suite.rawValue) key:\n\(answer)")
        }
        self.address = address
        self.key = key
    }
}
