import FuzzInput
import SDP

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzSDP(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    guard let description = try? SessionDescription(parsing: bytes) else { return }
    let text = description.serialized()
    // Repair of bytes that are not UTF-8 makes text longer, possibly beyond what is read.
    if text.utf8.count <= SessionDescription.maximumSize {
        let again = try? SessionDescription(parsing: text)
        require(again?.serialized() == text, "a description that was read is written and read again the same")
    }
    for keying in [LocalKeying.sdes(keys), .plain] { negotiate(description, media(keying)) }
    negotiate(description, browser)
}

private func negotiate(_ description: SessionDescription, _ local: LocalMedia) {
    var side = OfferAnswer(local)
    if let answer = try? side.makeAnswer(to: description) {
        require(answer.description.media.count == description.media.count, "each section gets its answer")
        require(answer.audio.remote.port > 0 || answer.audio.ice != nil, "there is a port to send to")
        require(!answer.audio.codecs.isEmpty, "there is a codec")
        require((try? side.receive(offer: description)) == [], "the same offer changes nothing")
        side.rollback()
        check(answer.description, by: local)
    }
    guard let offer = try? side.makeOffer() else { broken("an offer is made") }
    check(offer, by: local)
    _ = try? side.accept(answer: description)
    _ = try? side.makeAnswer(to: description)
}

/// What we write is read by one of us without a complaint, and no line of the peer's making stands in it.
private func check(_ description: SessionDescription, by local: LocalMedia) {
    guard let read = try? SessionDescription(parsing: description.serialized()) else { broken("ours can be read") }
    require(read.media.count == description.media.count, "no section is added or lost on the wire")
    for section in read.media where section.setup != nil {
        require(section.fingerprints.count == 1, "our own fingerprint goes with our setup")
    }
}

private let keys: [SDESKey] = SDESSuite.allCases.compactMap { suite in
    SDESKey(suite: suite, material: [UInt8](repeating: 7, count: suite.keyMaterialSize))
}

private func media(_ keying: LocalKeying) -> LocalMedia {
    LocalMedia(address: "192.0.2.1", port: 5_000, ssrc: 1, canonicalName: "fuzz", sessionID: 1, keying: [keying])
}

private let browser: LocalMedia = {
    var media = LocalMedia(
        ice: LocalICE(
            usernameFragment: "fuzz", password: "0123456789012345678901",
            candidates: ["1 1 udp 1 192.0.2.1 5000 typ host"]),
        ssrc: 1, canonicalName: "fuzz", sessionID: 1,
        keying: [
            .dtls(fingerprints: [Fingerprint(algorithm: "sha-256", bytes: [UInt8](repeating: 1, count: 32))]),
            .sdes(keys), .plain,
        ])
    media.codecs = AudioCodec.allCases
    media.usesComfortNoise = true
    media.feedback = RTCPFeedbackKind.allCases
    return media
}()
