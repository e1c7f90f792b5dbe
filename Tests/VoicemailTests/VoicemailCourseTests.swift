import Core
import TestSupport
import Testing
import Voicemail

@Suite("The course of a call that leaves a message")
struct VoicemailCourseTests {
    private typealias Line = Timeline<VoicemailCourse>

    private func call(greets: Bool = true, longest: Duration = .seconds(60), isAnswered: Bool = false) -> Line {
        var line = Line(VoicemailCourse(hasGreeting: greets, longest: longest, isAnswered: isAnswered))
        #expect(line.feed(.begin) == [.admit])
        return line
    }

    /// A call whose recording has just begun.
    private func recording(longest: Duration = .seconds(60), isSpeaking: Bool = false) -> Line {
        var line = call(greets: false, longest: longest)
        line.feed(.admitted)
        line.feed(.answered)
        if isSpeaking { line.feed(.speech(isOver: false)) }
        #expect(line.feed(.soundEnded(1)) == [.record])
        return line
    }

    @Test("A caller hears the greeting and the tone, speaks, and is hung up once the message is saved")
    func wholeCourse() {
        var line = call()
        #expect(line.feed(.admitted) == [.answer])
        #expect(line.feed(.answered) == [.play(.greeting, number: 1)])
        #expect(line.feed(.soundEnded(1)) == [.play(.beep, number: 2)])
        #expect(line.feed(.soundEnded(2)) == [.record])
        line.feed(.speech(isOver: false))
        #expect(line.feed(.key("#")) == [.stopRecording])
        #expect(line.feed(.saved) == [.hangUp])
        #expect(line.core.nextDeadline == nil && line.feed(.key("#")).isEmpty)
    }

    @Test("Without a greeting the tone is heard at once, and the key # leaves out the rest of a greeting")
    func skipsGreeting() {
        var plain = call(greets: false)
        plain.feed(.admitted)
        #expect(plain.feed(.answered) == [.play(.beep, number: 1)])
        var line = call()
        line.feed(.admitted)
        line.feed(.answered)
        #expect(line.feed(.key("5")).isEmpty)
        #expect(line.feed(.key("#")) == [.stopSound, .play(.beep, number: 2)])
        #expect(line.feed(.soundEnded(1)).isEmpty && line.feed(.key("#")).isEmpty)
    }

    @Test("A greeting that cannot be played is left out: the message matters more")
    func greetingFails() {
        var line = call()
        line.feed(.admitted)
        line.feed(.answered)
        #expect(line.feed(.soundFailed(1, "no such file")) == [.warn("no such file"), .play(.beep, number: 2)])
    }

    @Test("A full mailbox rejects a call before it is answered, and ends one that is answered already")
    func full() {
        var line = call()
        #expect(line.feed(.refused("is full")) == [.reject("is full")])
        #expect(line.feed(.admitted).isEmpty && line.feed(.answered).isEmpty)
        var answered = call(isAnswered: true)
        #expect(answered.feed(.refused("is full")) == [.fail("is full")])
    }

    @Test("A disk that does not answer within 5 s counts as full, and its late answer is not heard")
    func diskHangs() {
        var line = call()
        line.advance(by: .milliseconds(4_999), firing: .timerFired)
        #expect(line.outputs == [.admit])
        line.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(line.outputs.last == .reject("the mailbox's disk did not answer within 5 s"))
        #expect(line.feed(.admitted).isEmpty)
    }

    @Test("A message waits while its call is handed over, and continues behind a tone, for the rest of its time")
    func handedOver() {
        var line = recording(longest: .seconds(60))
        line.advance(by: .seconds(4), firing: .timerFired)
        line.feed(.speech(isOver: false))
        line.feed(.speech(isOver: true))
        #expect(line.feed(.paused).isEmpty && line.core.nextDeadline == nil)
        line.advance(by: .seconds(100), firing: .timerFired)
        #expect(line.core.isPaused, "what is said meanwhile is not part of it")
        #expect(line.feed(.resumed) == [.play(.beep, number: 2)] && line.core.isPaused)
        #expect(line.feed(.resumed).isEmpty && line.core.nextDeadline == nil)
        #expect(line.feed(.soundEnded(2)).isEmpty && !line.core.isPaused)
        // As long as behind the first tone, and not for ever.
        line.advance(by: .milliseconds(9_999), firing: .timerFired)
        #expect(line.outputs.last != .stopRecording)
        line.feed(.speech(isOver: false))
        line.advance(by: .milliseconds(46_000), firing: .timerFired)
        #expect(line.outputs.last != .stopRecording)
        line.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(line.outputs.last == .stopRecording)
    }

    @Test("A hand-over before the recording begins, a second one in the tone, and the key # in one are understood")
    func handedOverElsewhere() {
        var early = call(greets: false)
        early.feed(.admitted)
        early.feed(.answered)
        early.feed(.paused)
        #expect(early.feed(.soundEnded(1)) == [.record] && early.core.nextDeadline == nil)
        #expect(early.feed(.resumed) == [.play(.beep, number: 2)])
        #expect(early.feed(.paused).isEmpty && early.feed(.soundEnded(2)).isEmpty && early.core.nextDeadline == nil)
        #expect(early.feed(.resumed) == [.play(.beep, number: 3)])
        #expect(early.feed(.soundFailed(3, "no sound")) == [.warn("no sound")])
        #expect(early.core.nextDeadline == early.now.advanced(by: VoicemailCourse.patience))
        var line = recording()
        line.feed(.paused)
        #expect(line.feed(.key("#")) == [.stopRecording])
        #expect(line.feed(.resumed).isEmpty && line.feed(.saved) == [.hangUp])
        var failing = recording()
        failing.feed(.paused)
        #expect(failing.feed(.recordingFailed("the disk is full")) == [.fail("the disk is full")])
    }

    @Test("A message ends 5 s after the last speech, and not in a pause of less")
    func endsBySilence() {
        var line = recording()
        line.feed(.speech(isOver: false))
        line.advance(by: .seconds(20), firing: .timerFired)
        line.feed(.speech(isOver: true))
        line.advance(by: .milliseconds(4_999), firing: .timerFired)
        line.feed(.speech(isOver: false))
        line.advance(by: .seconds(10), firing: .timerFired)
        #expect(line.outputs.last == .record)
        line.feed(.speech(isOver: true))
        line.advance(by: .milliseconds(4_999), firing: .timerFired)
        #expect(line.outputs.last == .record)
        line.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(line.outputs.last == .stopRecording)
    }

    @Test("A caller who says nothing is hung up after 10 s, and one who speaks over the tone has no such limit")
    func patience() {
        var silent = recording()
        silent.advance(by: .milliseconds(9_999), firing: .timerFired)
        #expect(silent.outputs.last == .record)
        silent.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(silent.outputs.last == .stopRecording)
        var speaking = recording(isSpeaking: true)
        speaking.advance(by: .seconds(59), firing: .timerFired)
        #expect(speaking.outputs.last == .record)
    }

    @Test("A message ends at its longest time, to the millisecond")
    func longestTime() {
        var line = recording(longest: .seconds(30), isSpeaking: true)
        line.advance(by: .milliseconds(29_999), firing: .timerFired)
        #expect(line.outputs.last == .record)
        line.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(line.outputs.last == .stopRecording)
    }

    @Test("A disk that fails ends the call, while the message is spoken and while it is saved")
    func diskFails() {
        var speaking = recording()
        #expect(speaking.feed(.recordingFailed("disk full")) == [.fail("disk full")])
        var saving = recording()
        saving.feed(.key("#"))
        saving.advance(by: .seconds(10), firing: .timerFired)
        #expect(saving.outputs.last == .fail("the message was not saved within 10 s"))
    }
}
