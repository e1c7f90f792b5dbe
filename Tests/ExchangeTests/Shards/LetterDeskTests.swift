import JSON
import SignalWire
import TestSupport
import Testing

@testable import ExchangeCore

/// Shards, epochs and bodies of these tests.
enum Post {
    static func shard(_ number: Int) throws -> Shard { try #require(Shard(number)) }
    static func epoch(_ number: Int64) throws -> OwnerEpoch { try #require(OwnerEpoch(timeline: "1", number: number)) }
    static func body(_ number: Int) throws -> KeptJSON { try #require(KeptJSON(JSONValue.integer(Int64(number)))) }
    static func numbers(_ arrival: LetterDesk.Arrival) -> [UInt64] { arrival.letters.map(\.number) }
}

extension Saved {
    /// Writes what a desk puts out.
    mutating func apply(_ changes: [Change]) {
        for change in changes {
            switch change {
            case .letter(let letter):
                letters.removeAll { $0.from == letter.from && $0.to == letter.to && $0.number == letter.number }
                letters.append(letter)
            case .lettersForgotten(let from, let to, let number):
                letters.removeAll { $0.from == from && $0.to == to && $0.number <= number }
            case .letterMarks(let marks):
                letterMarks.removeAll { $0.shard == marks.shard && $0.peer == marks.peer }
                letterMarks.append(marks)
            default: Issue.record("\(change) is of no desk")
            }
        }
    }
}

@Suite struct LetterDeskTests {
    let one: Shard
    let two: Shard
    var sender: LetterDesk
    var receiver: LetterDesk

    init() throws {
        one = try Post.shard(1)
        two = try Post.shard(2)
        sender = LetterDesk(of: one, epoch: try Post.epoch(1))
        receiver = LetterDesk(of: two, epoch: try Post.epoch(1))
    }

    private mutating func write(_ count: Int) throws -> [LetterDelivery] {
        try (0..<count).map { sender.write(try Post.body($0), to: two) }
    }

    @Test("Letters are numbered for each receiver, and written with the changes of their sender")
    mutating func numbers() throws {
        let three = try Post.shard(3)
        let letters = try write(2) + [sender.write(try Post.body(9), to: three)]
        #expect(letters.map(\.letter.number) == [1, 2, 1])
        #expect(sender.takeChanges() == letters.map { .letter($0.letter) })
        #expect(sender.takeChanges().isEmpty)
        #expect(sender.waitingPeers == [two, three])
    }

    @Test("A letter is consumed once, and each repetition is acknowledged again")
    mutating func doubled() throws {
        let letter = try write(1)[0]
        let first = receiver.receive(letter)
        #expect(first.letters == [letter.letter])
        #expect(
            receiver.takeChanges() == [
                .letterMarks(StoredLetterMarks(shard: two, peer: one, consumed: 1, peerEpoch: try Post.epoch(1)))
            ])
        let second = receiver.receive(letter)
        #expect(second.letters.isEmpty && second.receipt == first.receipt && first.receipt?.upTo == 1)
        #expect(receiver.takeChanges().isEmpty)
    }

    @Test("Letters that arrive early wait for those before them, and are acknowledged with them")
    mutating func reordered() throws {
        let letters = try write(4)
        for early in [3, 1, 2, 1] { #expect(receiver.receive(letters[early]) == .init()) }
        let arrival = receiver.receive(letters[0])
        #expect(arrival.letters == letters.map(\.letter) && arrival.receipt?.upTo == 4)
        #expect(Post.numbers(receiver.receive(letters[2])) == [])
    }

    @Test("A receipt deletes the letters that it is for, and an older or impossible one nothing")
    mutating func receipts() throws {
        let letters = try write(3)
        _ = sender.takeChanges()
        func receipt(_ number: UInt64) throws -> LetterReceipt {
            LetterReceipt(from: two, to: one, upTo: number, epoch: try Post.epoch(1))
        }
        sender.receive(try receipt(4))
        #expect(sender.unacknowledged(by: two) == letters)
        sender.receive(try receipt(2))
        sender.receive(try receipt(1))
        #expect(sender.unacknowledged(by: two) == [letters[2]])
        #expect(sender.bytes == letters[2].letter.bytes)
        #expect(
            sender.takeChanges() == [
                .lettersForgotten(from: one, to: two, upTo: 2),
                .letterMarks(StoredLetterMarks(shard: one, peer: two, acknowledged: 2, peerEpoch: try Post.epoch(1))),
            ])
        sender.receive(try receipt(3))
        #expect(sender.waitingPeers.isEmpty && sender.bytes == 0)
    }

    @Test("Letters and receipts of an older epoch than any before count no more, and what of it waits is dropped")
    mutating func epochs() throws {
        let letters = try write(3)
        let newer = try Post.epoch(2)
        #expect(receiver.receive(letters[1]) == .init())
        // The next owner of the sender's shard, which found the first two letters; the third was never stored.
        #expect(Post.numbers(receiver.receive(LetterDelivery(letters[0].letter, epoch: newer))) == [1])
        #expect(receiver.receive(letters[1]) == .init() && receiver.receive(letters[2]) == .init())
        #expect(Post.numbers(receiver.receive(LetterDelivery(letters[1].letter, epoch: newer))) == [2])

        sender.receive(LetterReceipt(from: two, to: one, upTo: 1, epoch: newer))
        sender.receive(LetterReceipt(from: two, to: one, upTo: 3, epoch: try Post.epoch(1)))
        #expect(sender.unacknowledged(by: two).map(\.letter.number) == [2, 3])
    }

    @Test("A later timeline of the database is newer than any epoch before it")
    mutating func timelines() throws {
        let letter = try write(1)[0].letter
        let later = try #require(OwnerEpoch(timeline: "2", number: 1))
        _ = receiver.receive(LetterDelivery(letter, epoch: later))
        #expect(receiver.receive(LetterDelivery(letter, epoch: try Post.epoch(99))).receipt == nil)
    }

    @Test("What is for another shard is not taken")
    mutating func misdirected() throws {
        let letter = sender.write(try Post.body(1), to: try Post.shard(3))
        #expect(receiver.receive(letter) == .init())
        #expect(sender.receive(letter) == .init())
        receiver.receive(LetterReceipt(from: two, to: one, upTo: 1, epoch: try Post.epoch(1)))
        #expect(receiver.takeChanges().isEmpty)
    }

    private func refusal(of bytes: Int, to peer: Shard) -> RPCErrorCode? {
        do {
            try sender.afford(bytes, to: peer)
            return nil
        } catch {
            return error.known
        }
    }

    @Test("Requests find room up to the bound of a pair and of all, and follow-ups are always written")
    mutating func bounds() throws {
        var limits = LetterDesk.Limits()
        let body = try Post.body(1)
        let bytes = body.bytes + 512
        (limits.ofPair, limits.total) = (2 * bytes, 3 * bytes)
        sender = LetterDesk(of: one, epoch: try Post.epoch(1), limits: limits)
        let three = try Post.shard(3)
        try sender.afford(body.bytes + bytes, to: two)
        #expect(refusal(of: body.bytes + bytes + 1, to: two) == .tooManyRequests)
        _ = try write(2)
        #expect(refusal(of: body.bytes, to: two) == .tooManyRequests)
        try sender.afford(body.bytes, to: three)
        _ = sender.write(body, to: three)
        #expect(refusal(of: 0, to: three) == .tooManyRequests)
        #expect(sender.write(body, to: two).letter.number == 3)
        sender.receive(LetterReceipt(from: two, to: one, upTo: 3, epoch: try Post.epoch(1)))
        try sender.afford(body.bytes, to: two)
    }

    @Test("The largest invite fits between two shards, and again while another one waits for that")
    func largest() {
        #expect(SignalLimits.streamInviteDataBytes + 8 * 1_024 < LetterDesk.Limits().ofPair)
        #expect(2 * (SignalLimits.inviteDataBytes + 8 * 1_024) < LetterDesk.Limits().ofPair)
    }

    @Test("Early letters past their bound are dropped, and consumed when they come again")
    mutating func earlyBound() throws {
        var limits = LetterDesk.Limits()
        limits.early = 2 * (try Post.body(1).bytes + 512)
        receiver = LetterDesk(of: two, epoch: try Post.epoch(1), limits: limits)
        let letters = try write(5)
        for early in [4, 3, 2, 1] { #expect(receiver.receive(letters[early]) == .init()) }
        #expect(Post.numbers(receiver.receive(letters[0])) == [1])
        #expect(Post.numbers(receiver.receive(letters[1])) == [2])
        #expect(Post.numbers(receiver.receive(letters[2])) == [3, 4, 5])
    }

    @Test("A restored desk sends what was not acknowledged, under its own epoch, and gives no number twice")
    mutating func restored() throws {
        var saved = Saved()
        let letters = try write(3)
        for letter in letters { sender.receive(try LetterReceipt(receiver.receive(letter), limit: 2)) }
        let back = receiver.write(try Post.body(7), to: one)
        #expect(Post.numbers(sender.receive(back)) == [1])
        saved.apply(sender.takeChanges() + receiver.takeChanges())

        var next = LetterDesk(of: one, epoch: try Post.epoch(2))
        next.restore(saved)
        #expect(next.unacknowledged(by: two) == [LetterDelivery(letters[2].letter, epoch: try Post.epoch(2))])
        #expect(next.bytes == letters[2].letter.bytes)
        #expect(next.receive(back).letters.isEmpty)
        next.receive(LetterReceipt(from: two, to: one, upTo: 3, epoch: try Post.epoch(1)))
        saved.apply(next.takeChanges())
        var last = LetterDesk(of: one, epoch: try Post.epoch(3))
        last.restore(saved)
        #expect(last.waitingPeers.isEmpty)
        #expect(last.write(letters[0].letter.body, to: two).letter.number == 4)
        #expect(saved.letters == [back.letter])
    }
}

extension LetterReceipt {
    /// The receipt of an arrival, for no more than `limit`.
    fileprivate init(_ arrival: LetterDesk.Arrival, limit: UInt64) throws {
        self = try #require(arrival.receipt)
        upTo = min(upTo, limit)
    }
}
