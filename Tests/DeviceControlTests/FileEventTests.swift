import AudioKit
import ControlWire
import Foundation
import MediaEngine
import Testing

@testable import CallAgent
@testable import DeviceControl

@Suite("Files that clients are notified of")
struct FileEventTests {
    @Test("A file that fails is reported at once, a recording as such")
    func failures() throws {
        let call = CallID(number: 7)
        let played = try #require(
            throws: AudioFileError.self
        ) { _ = try AudioFileReader(path: "/nowhere/a.wav", loops: false) }
        let recorded = try #require(throws: AudioFileError.self) { _ = try WAVWriter(path: "/nowhere/a.part.wav") }
        guard case .play(7, let file)? = ControlEvent(.fileFailed(call, played)) else {
            Issue.record("nothing is told of a file that is played")
            return
        }
        #expect(file.state == "failed" && file.path == "/nowhere/a.wav" && file.error == "\(played)")
        guard case .recording(7, let kept)? = ControlEvent(.fileFailed(call, recorded)) else {
            Issue.record("nothing is told of a recording")
            return
        }
        #expect(kept.state == "failed" && kept.path == "/nowhere/a.part.wav" && kept.error == "\(recorded)")
        let ended = ControlEvent(.playingEnded(call, path: "/a.wav", .callEnded))
        #expect(ended == .play(call: 7, .init(state: "ended", path: "/a.wav", reason: "call_ended")))
    }
}
