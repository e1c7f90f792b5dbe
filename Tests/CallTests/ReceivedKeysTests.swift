import Testing
import Core

@testable import Call

@Suite("Keys that media and signaling both carry")
struct ReceivedKeysTests {
    private var keys = ReceivedKeys()
    private var heard = ""

    private mutating func take(
        _ key: Character, _ carrier: ReceivedKeys.Carrier, at milliseconds: Int64, held: Int64 = 100
    ) {
        let now = Instant.zero.advanced(by: .milliseconds(milliseconds))
        if keys.isNew(key, by: carrier, heldFor: .milliseconds(held), at: now) { heard.append(key) }
    }

    @Test("A key that comes both ways counts once, whichever is first")
    mutating func both() {
        for (at, first, second) in [
            (0, ReceivedKeys.Carrier.media, .signaling), (5_000, .signaling, .media),
        ] as [(Int64, ReceivedKeys.Carrier, ReceivedKeys.Carrier)] {
            for key in "112" { take(key, first, at: at) }
            for key in "112" { take(key, second, at: at + 1_900) }
        }
        #expect(heard == "112112")
    }

    @Test("A key that is held for long counts once though signaling reports it when it begins")
    mutating func held() {
        take("5", .signaling, at: 0)
        take("5", .media, at: 6_000, held: 5_900)
        take("5", .media, at: 7_000)
        #expect(heard == "55")
    }

    @Test("Keys that come one way only all count, and a lost one hides none that is pressed later")
    mutating func single() {
        for index in 0..<100 { take("7", .signaling, at: Int64(index) * 10) }
        #expect(heard.count == 100)
        heard = ""
        keys = ReceivedKeys()
        take("1", .signaling, at: 0)
        take("1", .media, at: 10_000)
        take("1", .signaling, at: 10_050)
        take("2", .media, at: 10_100)
        #expect(heard == "112")
    }
}
