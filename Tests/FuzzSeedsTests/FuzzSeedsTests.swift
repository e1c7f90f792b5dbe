import Foundation
import Testing

/// Each seed of each fuzz target once, through the reader that libFuzzer calls: `Targets` is a link to those of `Fuzz`.
///
/// What a reader promises is checked by `require`, which ends the process; the test that had begun names the target.
@Suite("Seeds of the fuzz targets")
struct FuzzSeedsTests {
    private typealias Reader = @Sendable (UnsafePointer<UInt8>?, Int) -> CInt

    private static let readers: [String: Reader] = [
        "bot-audiosocket": fuzzAudioSocket,
        "bot-call": fuzzBotCall,
        "bot-exotel": fuzzExotel,
        "bot-offer": fuzzBotOffer,
        "bot-plivo": fuzzPlivo,
        "bot-realtime": fuzzRealtime,
        "bot-request": fuzzBotRequest,
        "bot-telnyx": fuzzTelnyx,
        "bot-twilio": fuzzTwilio,
        "call-flow": fuzzCallFlow,
        "call-script": fuzzCallScript,
        "candidate": fuzzCandidate,
        "capture": fuzzCapture,
        "control": fuzzControl,
        "dns": fuzzDNS,
        "dtls": fuzzDTLS,
        "enrollment": fuzzEnrollment,
        "exec": fuzzExec,
        "feedback": fuzzFeedback,
        "fragment": fuzzFragment,
        "json": fuzzJSON,
        "jsonrpc": fuzzJSONRPC,
        "markup": fuzzMarkup,
        "mdns": fuzzMDNS,
        "noise": fuzzNoise,
        "number": fuzzNumber,
        "ogg-opus": fuzzOggOpus,
        "recording": fuzzRecording,
        "rtcp": fuzzRTCP,
        "rtp": fuzzRTP,
        "sdp": fuzzSDP,
        "sip": fuzzSIP,
        "sip-agent": fuzzUserAgent,
        "sip-stream": fuzzSIPStream,
        "stun": fuzzSTUN,
        "token": fuzzToken,
        "traceparent": fuzzTraceparent,
        "turn": fuzzTURN,
        "wav": fuzzWAV,
        "websocket": fuzzWebSocket,
        "xml": fuzzXML,
        "yaml": fuzzYAML,
    ]

    private static let names = readers.keys.sorted()

    private static let seeds = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Fuzz/Seeds")

    @Test("Every target with seeds has a reader here, and every reader has seeds")
    func everyTarget() throws {
        #expect(try Set(FileManager.default.contentsOfDirectory(atPath: Self.seeds.path)) == Set(Self.readers.keys))
    }

    @Test("A reader keeps its promises for each of its seeds, and for each cut in half", arguments: names)
    func seeds(target: String) throws {
        let reader = try #require(Self.readers[target])
        // Targets that read the same share a folder by a link.
        let folder = Self.seeds.appending(path: target).resolvingSymlinksInPath()
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        #expect(!files.isEmpty)
        for file in files {
            let bytes = [UInt8](try Data(contentsOf: file))
            for part in [bytes, Array(bytes.prefix(bytes.count / 2))] {
                let result = part.withUnsafeBufferPointer { reader($0.baseAddress, $0.count) }
                #expect(result == 0, "\(file.lastPathComponent)")
            }
        }
    }
}
