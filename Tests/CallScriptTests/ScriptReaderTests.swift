import CallScript
import ConfigReader
import Testing

@Suite("The language of call scripts")
struct ScriptReaderTests {
    @Test("Every statement is read, with its line, its words and its limit")
    func reads() throws {
        let script = try CallScript(
            reading: """
                # A menu.
                limit 10 s
                record "what was heard.wav"
                wait for sound
                wait for silence of 500 ms within 20 s
                press 1,,2
                expect length 1 s to 2.5 s

                expect like sales.wav at least 0.8
                play hello.wav
                expect silence of 2s
                wait 3 s
                wait for hang-up within 5 s
                """, file: "menu.call")
        #expect(script.statements.map(\.line) == [3, 4, 5, 6, 7, 9, 10, 11, 12, 13])
        #expect(script.statements[2].action == .waitForSilence(24_000) && script.statements[2].limit == 960_000)
        #expect(script.statements[1].limit == 480_000 && script.statements[1].text == "wait for sound")
        #expect(script.statements[4].action == .expectLength(48_000...120_000))
        #expect(script.statements[5].action == .expectLike("sales.wav", 0.8))
        #expect(script.soundFiles.map(\.path) == ["sales.wav", "hello.wav"])
        #expect(script.recordings.map(\.path) == ["what was heard.wav"])
    }

    @Test(
        "What cannot be understood is named with file, line and word",
        arguments: [
            ("pres 1", "menu.call:2: pres: is no statement. Did you mean \"press\"?"),
            ("press 1x", "menu.call:2: 1x: must be keys"), ("press", "menu.call:2: at its end: must be keys"),
            ("wait 5", "menu.call:2: 5: must be a time"), ("wait 700 s", "menu.call:2: 700: must be a time"),
            ("wait for sond", "menu.call:2: sond: is nothing to wait for. Did you mean \"sound\"?"),
            ("wait for sound 3 s", "menu.call:2: 3: is not expected here"),
            ("wait for sound within 3 s more", "menu.call:2: more: is not expected here"),
            ("expect length 3 s to 2 s", "menu.call:2: to: the second length"),
            ("expect like a.wav at least 2", "menu.call:2: 2: must be a likeness"),
            ("record end", "menu.call:2: end: nothing is being recorded"),
            ("hang", "menu.call:2: at its end: a word is missing: up"),
            ("say hello", "menu.call:2: say: there is no voice"),
        ])
    func names(line: String, message: String) throws {
        let error = #expect(throws: ConfigError.self) {
            try CallScript(reading: "wait for sound\n\(line)\n", file: "menu.call")
        }
        #expect(error?.description.hasPrefix(message) == true, "\(error?.description ?? "")")
    }

    @Test("All mistakes are reported at once; an empty script, and statements after the end, are mistakes")
    func all() {
        let two = #expect(throws: ConfigError.self) { try CallScript(reading: "a\nb\n", file: "f") }
        #expect(two?.problems.count == 2)
        #expect(throws: ConfigError.self) { try CallScript(reading: "# nothing\n", file: "f") }
        #expect(throws: ConfigError.self) { try CallScript(reading: "hang up\npress 1\n", file: "f") }
    }
}
