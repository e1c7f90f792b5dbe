import JSON
import Testing
import Voicemail

@Suite("What a mailbox has room for")
struct VoicemailBoundsTests {
    @Test("The longest message is counted with 32 kB a second, and what is written beside it")
    func arithmetic() {
        #expect(VoicemailBounds.soundBytes(.seconds(180)) == 44 + 180 * 32_000)
        #expect(VoicemailBounds().messageBytes == 44 + 5_760_000 + 4_096)
        #expect(VoicemailBounds.milliseconds(ofBytes: 44 + 48_000) == 1_500)
        #expect(VoicemailBounds.milliseconds(ofBytes: 10) == 0)
    }

    @Test("Messages that are being left count as messages")
    func count() {
        var bounds = VoicemailBounds()
        bounds.mostMessages = 3
        var contents = VoicemailBounds.Contents()
        contents.messages = 1
        contents.beginning = [(reserved: 0, written: 0)]
        #expect(bounds.obstacle(in: contents) == nil)
        contents.messages = 2
        #expect(bounds.obstacle(in: contents) == "is full: it has 3 messages (most_messages)")
    }

    @Test("A message is taken while the longest one fits into the megabytes, to the byte")
    func size() {
        var bounds = VoicemailBounds()
        bounds.megabytes = 20
        var contents = VoicemailBounds.Contents()
        contents.beginning = [(reserved: bounds.messageBytes, written: 400)]
        contents.bytes = 20_000_000 - 2 * bounds.messageBytes
        #expect(bounds.obstacle(in: contents) == nil)
        contents.bytes += 1
        #expect(bounds.obstacle(in: contents) == "is full: 5 of 20 MB are left (megabytes)")
    }

    @Test("A message is taken while the disk has room for it, for those that are being left, and 16 MB")
    func disk() {
        let bounds = VoicemailBounds()
        var contents = VoicemailBounds.Contents()
        contents.beginning = [(reserved: 1_000_000, written: 400_000), (reserved: 1_000, written: 2_000)]
        contents.freeBytes = bounds.messageBytes + 600_000 + 16_000_000
        #expect(bounds.obstacle(in: contents) == nil)
        contents.freeBytes = bounds.messageBytes + 600_000 + 15_999_999
        #expect(bounds.obstacle(in: contents) == "is full: its disk has 22 MB free")
    }

    @Test("One caller has a quarter of a mailbox at most, and five of the longest messages at least")
    func share() {
        var bounds = VoicemailBounds()
        #expect(bounds.mostOfCaller == 25 && bounds.bytesOfCaller == 125_000_000)
        var contents = VoicemailBounds.Contents()
        contents.messagesOfCaller = 24
        contents.bytesOfCaller = bounds.bytesOfCaller - bounds.messageBytes
        #expect(bounds.obstacle(in: contents) == nil)
        contents.messagesOfCaller = 25
        #expect(bounds.obstacle(in: contents) == "has 25 messages of this caller, the limit for one caller")
        contents.messagesOfCaller = 24
        contents.bytesOfCaller += 1
        #expect(
            bounds.obstacle(in: contents) == "has 119 MB of this caller, and 125 is the limit for one caller")
        (bounds.mostMessages, bounds.megabytes) = (8, 20)
        #expect(bounds.mostOfCaller == 5 && bounds.bytesOfCaller == 5 * bounds.messageBytes)
    }

    @Test("A message goes when it is older than it is kept, and never without such a limit")
    func age() {
        var bounds = VoicemailBounds()
        #expect(!bounds.isExpired(age: .seconds(1_000_000_000)))
        bounds.days = 2
        #expect(!bounds.isExpired(age: .seconds(172_800)) && bounds.isExpired(age: .seconds(172_801)))
    }
}

@Suite("Messages as JSON")
struct VoicemailMessageTests {
    private var message: VoicemailMessage {
        var message = VoicemailMessage(
            id: "k3x9ab", caller: "+4930123", name: "Ann \"the\" Boss\\", called: "bob",
            received: "2026-11-29T10:40:05.123Z")
        message.durationMilliseconds = 12_345
        message.isHeard = true
        message.isCut = true
        return message
    }

    @Test("A message is read as it was written, under the name that its file has")
    func roundTrip() throws {
        let value = try #require(JSONValue(plain: message.text(), nesting: 2))
        #expect(VoicemailMessage(value, id: "k3x9ab") == message)
        #expect(VoicemailMessage(value, id: "../etc")?.id == "../etc")
        #expect(message.seconds == 12.3)
    }

    @Test("The longest texts fit into what is counted for a message")
    func size() {
        let long = String(repeating: "\"", count: 256)
        var longest = VoicemailMessage(id: "k3x9ab", caller: long, name: long, called: long, received: long)
        longest.durationMilliseconds = .max
        longest.reservedBytes = .max
        longest.isCut = true
        #expect(longest.text().count < VoicemailMessage.mostBytes)
    }

    @Test("What a damaged file says is kept free is neither negative nor more than can be added up")
    func reservation() throws {
        for (given, read) in [("-1", 0), ("999999999999999999", 1 << 40), ("5764140", 5_764_140)] {
            let text = #"{"caller":"ann","received":"x","reserved_bytes":\#(given)}"#
            let value = try #require(JSONValue(plain: Array(text.utf8), nesting: 2))
            #expect(VoicemailMessage(value, id: "a")?.reservedBytes == read)
        }
    }

    @Test("Text that was cut off at any place, and other text, is no message")
    func damage() {
        let text = message.text()
        for count in 0..<text.count { #expect(JSONValue(plain: Array(text[..<count]), nesting: 2) == nil) }
        for other: JSONValue in [[], 5, ["caller": 5, "received": "x"], ["caller": "ann"]] {
            #expect(VoicemailMessage(other, id: "a") == nil)
        }
    }
}
