import SIP
import TestSupport
import Testing

@Suite("Summaries of a mailbox (RFC 3842)")
struct MessageSummaryTests {
    private func read(_ text: String) -> MessageSummary? { MessageSummary(parsing: Array(text.utf8)) }

    /// RFC 3842 §5.3, with headers of messages behind an empty line.
    private let example =
        "Messages-Waiting: yes\r\nMessage-Account: sip:alice@vmail.example.com\r\nVoice-Message: 2/8 (0/2)\r\n\r\n"
        + "To: alice@atlanta.example.com\r\nFrom: bob@biloxi.example.com\r\nSubject: carpool tomorrow?\r\n"

    @Test("RFC 3842 §5.3: The example is read, and what is about single messages is passed over")
    func vector() {
        #expect(read(example) == MessageSummary(new: 2, old: 8, account: "sip:alice@vmail.example.com"))
        let others = "Messages-Waiting: no\r\nFax-Message: 3/4\r\nText-Message: 1/0\r\n"
        #expect(read(others) == MessageSummary(new: 0, old: 0))
    }

    @Test("What is written is read again the same", arguments: [(0, 0), (1, 0), (0, 7), (12, 345)])
    func roundTrip(new: Int, old: Int) {
        for account in [nil, "sip:bob@sip.test"] {
            let summary = MessageSummary(new: new, old: old, account: account)
            #expect(summary.isWaiting == (new > 0))
            #expect(MessageSummary(parsing: summary.body) == summary)
        }
    }

    @Test("Names and words are read in any case, with any space, and with line feeds alone")
    func lenient() {
        #expect(read("messages-waiting:YES\nvoice-message : 1 / 2\n") == MessageSummary(new: 1, old: 2))
        #expect(read("Messages-Waiting: yes") == read("Messages-Waiting:  yes \r\n"))
        // A server that counts nothing says so all the same.
        #expect(read("Messages-Waiting: yes\r\n")?.isWaiting == true)
        let huge = "99999999999999999999"
        #expect(read("Messages-Waiting: yes\r\nVoice-Message: \(huge)/\(huge)\r\n")?.new == 1_000_000)
    }

    @Test(
        "Other texts are no summary",
        arguments: [
            "", "\r\n", "yes", "Messages-Waiting: maybe\r\n", "Voice-Message: 1/0\r\n",
            "Messages-Waiting: yes\r\nnothing\r\n",
            "Messages-Waiting: yes\r\nMessages-Waiting: no\r\n", "Messages-Waiting: yes\r\nVoice-Message: 1\r\n",
            "Messages-Waiting: yes\r\nVoice-Message: -1/0\r\n", "Messages-Waiting: yes\r\nVoice-Message: 1/0 x\r\n",
            "Messages-Waiting: yes\r\nVoice-Message: 1/0\r\nVoice-Message: 1/0\r\n",
        ])
    func refused(text: String) { #expect(read(text) == nil) }

    @Test("A text that ends anywhere, one of 4 KiB and more, and random bytes do no harm")
    func damaged() {
        let bytes = Array(example.utf8)
        for count in bytes.indices {
            guard let summary = MessageSummary(parsing: Array(bytes[..<count])) else { continue }
            #expect(summary.isWaiting)
        }
        #expect(read("Messages-Waiting: yes\r\nX: " + String(repeating: "x", count: 4_096)) == nil)
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<2_000 {
            var damaged = bytes
            for _ in 0..<3 {
                damaged[Int.random(in: damaged.indices, using: &generator)] = UInt8.random(
                    in: 0...255, using: &generator)
            }
            guard let summary = MessageSummary(parsing: damaged) else { continue }
            #expect(MessageSummary(parsing: summary.body) == summary)
        }
    }
}
