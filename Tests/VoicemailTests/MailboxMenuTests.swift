import Core
import TestSupport
import Testing
import Voicemail

@Suite("The menu of a mailbox's owner")
struct MailboxMenuTests {
    private typealias Line = Timeline<MailboxMenu>

    private let messages = [
        MailboxMenu.Message(id: "old", isHeard: true), MailboxMenu.Message(id: "a", isHeard: false),
        MailboxMenu.Message(id: "b", isHeard: false),
    ]

    private func hearing(_ messages: [MailboxMenu.Message]? = nil) -> Line {
        var line = Line(MailboxMenu(asksForPIN: false))
        #expect(line.feed(.begin) == [.list])
        line.feed(.listed(messages ?? self.messages))
        return line
    }

    private func keys(_ line: inout Line, _ text: String) -> [MailboxMenu.Output] {
        text.flatMap { line.feed(.key($0)) }.filter { $0 != .stopSound }
    }

    @Test("New messages come first, the oldest first, and one that was heard to its end is marked")
    func order() {
        var line = Line(MailboxMenu(asksForPIN: false))
        line.feed(.begin)
        #expect(
            line.feed(.listed(messages)) == [.play([.prompt(.counts(new: 2, old: 1)), .message("a")], number: 1)])
        #expect(line.feed(.soundEnded(1)) == [.mark("a", isHeard: true), .play([.prompt(.keys)], number: 2)])
        line.feed(.soundEnded(2))
        #expect(line.feed(.key("2")) == [.stopSound, .play([.message("b")], number: 3)])
        #expect(line.feed(.key("#")) == [.stopSound, .play([.message("old")], number: 4)])
        #expect(line.feed(.key("2")) == [.stopSound, .play([.prompt(.last), .prompt(.goodbye)], number: 5)])
        #expect(line.feed(.key("1")).isEmpty)
        #expect(line.feed(.soundEnded(4)).isEmpty && line.feed(.soundEnded(5)) == [.hangUp])
        #expect(line.core.nextDeadline == nil)
    }

    @Test("Keys repeat, delete and mark a message, also while it is played")
    func changes() {
        var line = hearing()
        #expect(keys(&line, "1") == [.play([.message("a")], number: 2)])
        #expect(keys(&line, "5") == [.mark("a", isHeard: false), .play([.prompt(.kept), .message("b")], number: 3)])
        #expect(keys(&line, "4") == [.mark("b", isHeard: true), .play([.prompt(.heard), .message("old")], number: 4)])
        #expect(
            keys(&line, "3") == [
                .delete("old"), .play([.prompt(.deleted), .prompt(.last), .prompt(.goodbye)], number: 5),
            ])
        var other = hearing()
        #expect(other.feed(.key("9")).isEmpty && other.feed(.key("A")).isEmpty)
        #expect(keys(&other, "*") == [.play([.prompt(.keys)], number: 2)])
        #expect(keys(&other, "0") == [.play([.prompt(.goodbye)], number: 3)])
    }

    @Test("An empty mailbox says so, and ends")
    func empty() {
        var line = Line(MailboxMenu(asksForPIN: false))
        line.feed(.begin)
        #expect(line.feed(.listed([])) == [.play([.prompt(.counts(new: 0, old: 0)), .prompt(.goodbye)], number: 1)])
        #expect(line.feed(.soundEnded(1)) == [.hangUp])
    }

    @Test("A caller who presses nothing hears the keys twice more, and is then hung up")
    func silent() {
        var line = hearing()
        line.feed(.soundEnded(1))
        line.feed(.soundEnded(2))
        #expect(line.advance(by: MailboxMenu.patience - .milliseconds(1)).isEmpty)
        for number in 3...4 {
            #expect(line.advance(by: .milliseconds(1)) == [.play([.prompt(.keys)], number: number)])
            #expect(line.core.nextDeadline == nil, "while the prompt is played")
            line.feed(.soundEnded(number))
            #expect(line.advance(by: MailboxMenu.patience - .milliseconds(1)).isEmpty)
        }
        #expect(line.advance(by: .milliseconds(1)) == [.play([.prompt(.goodbye)], number: 5)])
        #expect(line.feed(.soundEnded(5)) == [.hangUp])
    }

    @Test("A PIN is entered with # at its end; * begins again, and the prompt need not be heard to its end")
    func pin() {
        var line = Line(MailboxMenu(asksForPIN: true))
        #expect(line.feed(.begin) == [.play([.prompt(.pin)], number: 1)])
        #expect(keys(&line, "12*123456#") == [.check("123456")])
        #expect(line.feed(.key("1")).isEmpty && line.feed(.listed(messages)).isEmpty)
        #expect(line.feed(.pinAccepted) == [.list])
    }

    @Test("Three wrong PINs end the call, one does if no more may be tried, and so does a caller who enters nothing")
    func wrongPIN() {
        var line = Line(MailboxMenu(asksForPIN: true))
        line.feed(.begin)
        for _ in 0..<2 {
            #expect(keys(&line, "000000#") == [.check("000000")])
            guard case .play([.prompt(.wrong), .prompt(.pin)], _)? = line.feed(.pinRefused(mayRetry: true)).first else {
                return #expect(Bool(false), "it is asked for again")
            }
        }
        line.feed(.key("#"))
        guard
            case .play([.prompt(.wrong), .prompt(.goodbye)], let number)? = line.feed(.pinRefused(mayRetry: true)).first
        else { return #expect(Bool(false), "the call ends") }
        #expect(line.feed(.soundEnded(number)) == [.hangUp])

        var barred = Line(MailboxMenu(asksForPIN: true))
        barred.feed(.begin)
        barred.feed(.key("#"))
        #expect(barred.feed(.pinRefused(mayRetry: false)) == [.play([.prompt(.wrong), .prompt(.goodbye)], number: 3)])

        var silent = Line(MailboxMenu(asksForPIN: true))
        silent.feed(.begin)
        silent.feed(.soundEnded(1))
        #expect(silent.advance(by: MailboxMenu.patience) == [.play([.prompt(.goodbye)], number: 2)])
    }

    @Test("Any number of digits takes up no memory, and is not the PIN of which it is the beginning")
    func longPIN() {
        var line = Line(MailboxMenu(asksForPIN: true))
        line.feed(.begin)
        let outputs = keys(&line, String(repeating: "1", count: 10_000) + "#")
        guard case .check(let digits)? = outputs.first, outputs.count == 1 else {
            return #expect(Bool(false), "it is checked")
        }
        #expect(digits.count == MailboxMenu.pinDigits.upperBound + 1)
    }

    @Test("A disk that hangs or fails ends the call with the reason")
    func disk() {
        var line = Line(MailboxMenu(asksForPIN: false))
        line.feed(.begin)
        guard case .fail(let why)? = line.advance(by: MailboxMenu.listTime).first else {
            return #expect(Bool(false), "it fails")
        }
        #expect(why.contains("disk"))
        var broken = Line(MailboxMenu(asksForPIN: false))
        broken.feed(.begin)
        #expect(broken.feed(.listFailed("no rights")) == [.fail("no rights")])
    }

    @Test("Any inputs in any order do no harm", arguments: 0..<50)
    func random(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var line = Line(MailboxMenu(asksForPIN: Bool.random(using: &generator)))
        var ends = 0
        for number in 0..<400 {
            let inputs: [MailboxMenu.Input] = [
                .begin, .pinAccepted, .pinRefused(mayRetry: Bool.random(using: &generator)), .listed(messages),
                .listed([]),
                .listFailed("x"), .soundEnded(Int.random(in: 0...max(1, number), using: &generator)), .timerFired,
            ]
            let key = "0123456789*#AD!".randomElement(using: &generator) ?? "0"
            let outputs =
                Bool.random(using: &generator)
                ? line.feed(.key(key)) : line.feed(inputs.randomElement(using: &generator) ?? .begin)
            for output in outputs {
                switch output {
                case .hangUp, .fail: ends += 1
                case .mark(let id, _), .delete(let id): #expect(messages.map(\.id).contains(id))
                case .check, .list, .play, .stopSound: break
                }
            }
        }
        #expect(ends <= 1)
    }

    @Test("A voice says numbers as people do, and files have the names that the page lists")
    func prompts() {
        #expect(MailboxPrompt.counts(new: 1, old: 0).text == "You have 1 new message.")
        #expect(MailboxPrompt.counts(new: 2, old: 1).text == "You have 2 new messages, and 1 old message.")
        #expect(MailboxPrompt.counts(new: 0, old: 3).name == "old")
        let all: [MailboxPrompt] = [
            .pin, .wrong, .counts(new: 0, old: 0), .counts(new: 0, old: 1), .counts(new: 1, old: 1), .keys, .deleted,
            .heard,
            .kept, .last, .goodbye,
        ]
        #expect(all.map(\.name) == MailboxPrompt.names)
    }
}

extension Timeline<MailboxMenu> {
    /// Moves time on; returns what came out of it.
    fileprivate mutating func advance(by duration: Duration) -> [MailboxMenu.Output] {
        let before = outputs.count
        advance(by: duration, firing: .timerFired)
        return Array(outputs.dropFirst(before))
    }
}

@Suite("Wrong PINs of a mailbox")
struct PINAttemptsTests {
    @Test("A caller has five tries at once, and one each quarter of an hour")
    func ofCaller() {
        var attempts = PINAttempts()
        var now = Instant.zero
        #expect((0..<10).count { _ in attempts.admit("eve", at: now) } == 5)
        now = now.advanced(by: .seconds(899))
        #expect(attempts.admit("eve", at: now) == false)
        now = now.advanced(by: .seconds(1))
        #expect((0..<2).map { _ in attempts.admit("eve", at: now) } == [true, false])
        #expect(attempts.admit("bob", at: now) == true, "another caller has tries of its own")
    }

    @Test("All callers together have 20 at once and 480 a day, under any names")
    func ofAll() {
        var attempts = PINAttempts()
        #expect((0..<1_000).count { attempts.admit("eve\($0)", at: .zero) } == 20)
        let day = (1...86_400).count { attempts.admit("eve\($0)", at: .zero.advanced(by: .seconds(Int64($0)))) }
        #expect((475...480).contains(day))
    }

    @Test("A right PIN takes no try, and forgets the wrong ones of its caller")
    func right() {
        var attempts = PINAttempts()
        for _ in 0..<100 {
            for _ in 0..<2 { #expect(attempts.admit("bob", at: .zero) == true) }
            attempts.accept("bob")
            attempts.accept("bob")
        }
    }
}
