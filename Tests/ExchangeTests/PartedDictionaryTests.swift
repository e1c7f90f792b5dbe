import TestSupport
import Testing

@testable import ExchangeCore

struct PartedDictionaryTests {
    @Test func holdsWhatADictionaryHolds() {
        var generator = SeededGenerator(seed: 1)
        var parted = PartedDictionary<Int, Int>()
        var whole: [Int: Int] = [:]
        for step in 0..<20_000 {
            let key = Int.random(in: 0..<500, using: &generator)
            let value = Bool.random(using: &generator) ? step : nil
            parted[key] = value
            whole[key] = value
            #expect(parted.count == whole.count && parted[key] == whole[key])
        }
        #expect(Set(parted.keys) == Set(whole.keys))
        #expect(parted.values.sorted() == whole.values.sorted())
        #expect(parted.allSatisfy { whole[$0.key] == $0.value })
    }

    @Test func isEqualWhateverTheOrderOfItsEntries() {
        var up = PartedDictionary<String, Int>()
        var down = PartedDictionary<String, Int>()
        for number in 0..<300 {
            up["\(number)"] = number
            down["\(299 - number)"] = 299 - number
        }
        #expect(up == down)
        down["0"] = nil
        #expect(up != down && !down.isEmpty)
    }
}
