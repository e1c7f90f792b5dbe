import FuzzInput
import JSON
import SDP

/// Called by libFuzzer with each input: pieces of descriptions that hold nothing but ICE (RFC 8840), which clients of WHIP and
/// WHEP send.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzFragment(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    guard let fragment = try? ICEFragment(parsing: bytes) else { return }
    require(fragment.candidates.count <= ICEFragment.maximumCandidates, "candidates are bounded")
    // Sections may have several names; the answer has one.
    guard let mid = fragment.candidates.first?.mid ?? Optional("0") else { return }
    guard let again = try? ICEFragment(parsing: Array(fragment.text(mid: mid).utf8)) else {
        broken("a fragment that was read is written so that it can be read")
    }
    require(again.credentials == fragment.credentials, "credentials are read as written")
    require(again.candidates.map(\.value) == fragment.candidates.map(\.value), "candidates are read as written")
    require(again.hasEnded == fragment.hasEnded, "the end of candidates is read as written")
    restart(by: fragment)
}

/// The same fragment as a restart of an offer, and as candidates of it.
private func restart(by fragment: ICEFragment) {
    guard var offer = try? SessionDescription(parsing: Array(offerText.utf8)) else { broken("the offer can be read") }
    if let credentials = fragment.credentials {
        let renewed = offer.restarted(by: fragment, with: credentials)
        guard let read = try? SessionDescription(parsing: renewed.serialized()) else {
            broken("a restarted offer can be read")
        }
        require(read.media.count == offer.media.count, "a candidate adds no section")
        require(read.credentials == credentials, "a restarted offer has the new credentials")
    }
    for candidate in fragment.candidates {
        _ = offer.take(candidate: ["candidate": .string(candidate.value), "sdpMid": .string(candidate.mid)])
    }
    require(
        offer.media.allSatisfy { $0.candidates.count <= ICEFragment.maximumCandidates + 1 }, "candidates are bounded")
    let read = try? SessionDescription(parsing: offer.serialized())
    require(read?.media.count == offer.media.count, "a candidate adds no section")
}

private let offerText = """
    v=0
    o=- 1 1 IN IP4 0.0.0.0
    s=-
    t=0 0
    m=audio 9 UDP/TLS/RTP/SAVPF 111
    c=IN IP4 0.0.0.0
    a=mid:0
    a=rtpmap:111 opus/48000/2
    a=ice-ufrag:abcd
    a=ice-pwd:abcdefghijklmnopqrstuv
    a=candidate:1 1 udp 1 192.0.2.1 5000 typ host

    """
