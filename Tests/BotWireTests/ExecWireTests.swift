import BotWire
import Foundation
import TestSupport
import Testing

@Suite("The lines between Handset and a program in a call")
struct ExecWireTests {
    private struct NoHandover: Error {}

    private func command(_ text: String) throws -> ExecCommand { try ExecCommand(line: Array(text.utf8)) }

    @Test("Each command is read as it is written in docs/bots.md, and unknown members are passed over")
    func commands() throws {
        #expect(try command(#"{"command":"mark","name":"greeted"}"#) == .mark("greeted"))
        #expect(try command(#" {"command" : "clear", "why": ["x"]} "#) == .clear)
        #expect(try command(#"{"command":"dtmf","keys":"12#"}"#) == .press("12#"))
        #expect(try command(#"{"command":"transfer","to":"bob"}"#) == .transfer(to: "bob"))
        #expect(try command(#"{"command":"hangup"}"#) == .hangUp)
        #expect(try command(#"{"command":"handover_cancel"}"#) == .cancelHandover)
    }

    @Test("A hand-over has a person, and what both sides hear")
    func handover() throws {
        guard case .handover(let usual) = try command(#"{"command":"handover","to":"ben"}"#) else {
            throw NoHandover()
        }
        #expect(usual.target == "ben" && usual.whisper == nil && usual.acceptKey == nil && !usual.listens)
        guard
            case .handover(let full) = try command(
                ##"{"command":"handover","to":"ben","whisper_file":"/w.wav","accept":"#","music":"bot","ring_seconds":20,"bot":"listens"}"##
            )
        else { throw NoHandover() }
        #expect(full.whisperFile == "/w.wav" && full.acceptKey == "#" && full.music == ExecHandover.ownSound)
        #expect(full.ringSeconds == 20 && full.listens)
    }

    @Test(
        "A line that is no command says what is wrong, and does not repeat the line",
        arguments: [
            "", "[]", "7", "\"clear\"", "{", "{\"command\":", "{}", #"{"command":7}"#, #"{"command":"secret"}"#,
            #"{"command":"mark"}"#, #"{"command":"mark","name":""}"#, #"{"command":"mark","name":7}"#,
            #"{"command":"dtmf","keys":""}"#, #"{"command":"clear","x":[[[[[]]]]]}"#,
            #"{"command":"mark","name":"\#(String(repeating: "n", count: 257))"}"#,
            #"{"command":"handover"}"#, #"{"command":"handover","to":"b","accept":"11"}"#,
            #"{"command":"handover","to":"b","whisper":"a","whisper_file":"/a"}"#,
            #"{"command":"handover","to":"b","music":"m.wav"}"#, #"{"command":"handover","to":"b","ring_seconds":4}"#,
            #"{"command":"handover","to":"b","ring_seconds":"9"}"#, #"{"command":"handover","to":"b","bot":"x"}"#,
            #"{"command":"transfer"}"#, #"{"command":"transfer","to":""}"#,
            #"{"command":"transfer","to":"\#(String(repeating: "n", count: 257))"}"#,
            #"{"command":"clear","x":"\#(String(repeating: "x", count: 4_096))"}"#,
        ])
    func faults(line: String) {
        let fault = #expect(throws: ExecCommand.Fault.self) { try command(line) }
        #expect(fault?.description.isEmpty == false && fault?.description.contains("secret") == false)
    }

    @Test("A command that is cut off anywhere, or has a byte changed, is refused or another command, and nothing else")
    func damaged() {
        let line = Array(#"{"command":"mark","name":"a é \n"}"#.utf8)
        for length in 0..<line.count {
            #expect(throws: ExecCommand.Fault.self) { try ExecCommand(line: Array(line.prefix(length))) }
        }
        var random = SeededGenerator(seed: 5)
        for _ in 0..<3_000 {
            var bytes = line
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            if case .mark(let name)? = try? ExecCommand(line: bytes) { #expect(name.utf8.count <= 256) }
        }
    }

    @Test("Each event is one line of JSON with the members that docs/bots.md names")
    func events() throws {
        let begin = ExecEvent.Begin(
            call: 7, peer: "alice\n\"@x", isOutgoing: false, rateHz: 16_000, encoding: "linear", restarts: 0)
        let lines: [(ExecEvent, String)] = [
            (
                .begin(begin),
                #"{"call":7,"direction":"incoming","encoding":"linear","event":"begin","peer":"alice\n\"@x","rate_hz":16000,"restarts":0}"#
            ),
            (.digit("#", heldMilliseconds: 180), ##"{"event":"digit","held_ms":180,"key":"#"}"##),
            (.mark("a", played: 5), #"{"cleared":false,"event":"mark","name":"a","played":5}"#),
            (.markDiscarded("a"), #"{"cleared":true,"event":"mark","name":"a"}"#),
            (.cleared(played: 5), #"{"event":"cleared","played":5}"#),
            (
                .transfer(to: "bob", state: "ringing"), #"{"event":"transfer","state":"ringing","to":"bob"}"#
            ),
            (
                .handover(to: "bob", state: "ringing", reason: nil),
                #"{"event":"handover","state":"ringing","to":"bob"}"#
            ),
            (
                .handover(to: "bob", state: "busy", reason: "x"),
                #"{"event":"handover","reason":"x","state":"busy","to":"bob"}"#
            ),
            (.error("no"), #"{"event":"error","message":"no"}"#),
            (.end(reason: "completed"), #"{"event":"end","reason":"completed"}"#),
        ]
        for (event, text) in lines { #expect(String(decoding: event.line, as: UTF8.self) == text + "\n") }
    }
}
