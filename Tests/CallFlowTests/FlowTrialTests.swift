import CallFlow
import Core
import Testing

@Suite("Trials of call flows")
struct FlowTrialTests {
    /// How a trial ends, with what happened, as text.
    private func run(_ documents: [String: String], keys: String = "", longest: Duration = .seconds(100)) throws -> (
        end: FlowTrial.End, notes: [String]
    ) {
        var notes: [String] = []
        var trial = FlowTrial(
            first: try FlowFileName("menu.xml"), values: FlowValues(from: "ann", to: "bob", callSid: "c"), keys: keys,
            longest: longest)
        let end = trial.run(
            document: { name in
                guard let text = documents[name.text] else { return .failure(FlowUnusable("there is no such file")) }
                do throws(FlowFaults) {
                    return .success(try FlowDocument(parsing: Array("<Response>\(text)</Response>".utf8)))
                } catch {
                    return .failure(FlowUnusable(error.description))
                }
            },
            length: { _ in .success(.seconds(2)) },
            note: { time, note in
                switch note {
                case .output(.reached(let place)): notes.append("\(time.text) \(place)")
                case .key(let key): notes.append("\(time.text) key \(key)")
                case .recorded(let length): notes.append("\(time.text) recorded \(length.text)")
                case .output, .missing, .length, .connected, .dialEnded, .queued, .taken, .queueEnded, .streamEnded:
                    break
                }
            })
        return (end, notes)
    }

    @Test("Keys are pressed half a second after the prompts and after each other, each for the Gather that asks for it")
    func keys() throws {
        let trial = try run(
            [
                "menu.xml": "<Gather numDigits=\"2\" action=\"c-{{Digits}}.xml\"><Say>menu</Say></Gather>",
                "c-12.xml": "<Say>yes</Say><Gather action=\"d-{{Digits}}.xml\"/>", "d-3.xml": "<Hangup/>",
            ], keys: "123#")
        #expect(trial.end == .hungUp)
        #expect(
            trial.notes == [
                "0 s menu.xml:1: Gather", "2.5 s key 1", "3 s key 2", "3 s c-12.xml:1: Say", "5 s c-12.xml:1: Gather",
                "5.5 s key 3", "6 s key #", "6 s d-3.xml:1: Hangup",
            ])
    }

    @Test("A caller speaks for three seconds after the tone")
    func recording() throws {
        let trial = try run(["menu.xml": "<Record timeout=\"4\" action=\"end.xml\"/>", "end.xml": ""])
        #expect(trial.end == .hungUp)
        #expect(trial.notes == ["0 s menu.xml:1: Record", "9 s recorded 7 s", "9 s end.xml"])
    }

    @Test(
        "A flow that goes round in circles fails, also without a sound, and one that never ends reaches the longest call"
    )
    func endless() throws {
        guard case .failed = try run(["menu.xml": "<Redirect>menu.xml</Redirect>"]).end else {
            throw FlowUnusable("it did not fail")
        }
        #expect(try run(["menu.xml": "<Play loop=\"0\">a.wav</Play>"]).end == .tooLong)
        #expect(try run(["menu.xml": "<Reject reason=\"busy\"/>"]).end == .rejected(.busy))
    }
}
