import FuzzInput
import SDP

/// Called by libFuzzer with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzSDP(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    guard let description = try? SessionDescription(parsing: bytes) else { return }
    let text = description.serialized()
    // Repair of bytes that are not UTF-8 makes text longer, possibly beyond what is read.
    if text.utf8.count <= SessionDescription.maximumSize {
        let again = try? SessionDescription(parsing: text)
        require(again?.serialized() == text, "a description that was read is written and read again the same")
    }
    for keying in [LocalKeying.sdes(keys), .plain] {
        var side = OfferAnswer(media(keying))
        if let answer = try? side.makeAnswer(to: description) {
            require(answer.description.media.count == description.media.count, "each section gets its answer")
            require(answer.audio.remote.port > 0, "there is a port to send to")
        }
        guard let _ = try? side.makeOffer() else { broken("an offer is made") }
        _ = try? side.accept(answer: description)
    }
}

private let keys: [SDESKey] = SDESSuite.allCases.compactMap { suite in
    SDESKey(suite: suite, material: [UInt8](repeating: 7, count: suite.keyMaterialSize))
}

private func media(_ keying: LocalKeying) -> LocalMedia {
    LocalMedia(address: "192.0.2.1", port: 5_000, ssrc: 1, canonicalName: "fuzz", sessionID: 1, keying: [keying])
}
