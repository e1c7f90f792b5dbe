import Core
import Foundation
import Testing

@Suite("Time zones and days")
struct ZoneRulesTests {
    private func zone(_ name: String) throws -> ZoneRules {
        try ZoneRules(parsing: Array(Data(contentsOf: URL(fileURLWithPath: "/usr/share/zoneinfo/\(name)"))))
    }

    private func utc(_ text: String) throws -> WallClock {
        let parts = text.split(whereSeparator: { "-T:".contains($0) }).compactMap { Int($0) }
        let date = try #require(CivilDate(year: parts[0], month: parts[1], day: parts[2]))
        return WallClock(
            unixMilliseconds: (date.daysSince1970 * 86_400 + Int64(parts[3] * 3_600 + parts[4] * 60)) * 1_000)
    }

    @Test(
        "Clocks of Berlin skip an hour in spring, show one twice in autumn, and do so in years that the file does not list"
    )
    func daylightSaving() throws {
        let berlin = try zone("Europe/Berlin")
        #expect(berlin.local(at: try utc("2026-03-29T00:59")).description == "2026-03-29 01:59")
        #expect(berlin.local(at: try utc("2026-03-29T01:00")).description == "2026-03-29 03:00")
        #expect(berlin.local(at: try utc("2026-10-25T00:59")).description == "2026-10-25 02:59")
        #expect(berlin.local(at: try utc("2026-10-25T01:00")).description == "2026-10-25 02:00")
        #expect(berlin.local(at: try utc("2090-07-01T12:00")).description == "2090-07-01 14:00")
        #expect(berlin.local(at: try utc("2090-01-01T23:30")).description == "2090-01-02 00:30")
        let spring = try #require(CivilDate(year: 2026, month: 3, day: 29))
        let autumn = try #require(CivilDate(year: 2026, month: 10, day: 25))
        #expect(berlin.times(of: LocalTime(date: spring, second: 9_000)) == [])
        #expect(
            berlin.times(of: LocalTime(date: autumn, second: 9_000))
                == [try utc("2026-10-25T00:30"), try utc("2026-10-25T01:30")])
        #expect(berlin.times(of: LocalTime(date: autumn, second: 43_200)) == [try utc("2026-10-25T11:00")])
    }

    @Test("A zone of the southern half has its summer over the end of the year, and one without summer time has none")
    func others() throws {
        let sydney = try zone("Australia/Sydney")
        #expect(sydney.offset(at: try utc("2085-01-01T00:00")) == 39_600)
        #expect(sydney.offset(at: try utc("2085-07-01T00:00")) == 36_000)
        #expect(try zone("Asia/Kolkata").offset(at: utc("2085-07-01T00:00")) == 19_800)
        #expect(ZoneRules.utc.offset(at: try utc("2085-07-01T00:00")) == 0)
    }

    @Test("A file that is cut off at any length, or whose bytes are others, is refused or read, and never traps")
    func hostile() throws {
        let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: "/usr/share/zoneinfo/Europe/Berlin")))
        for length in 0..<bytes.count {
            #expect(throws: ZoneRules.Fault.self) { try ZoneRules(parsing: Array(bytes[..<length])) }
        }
        var random = SplitMix64(seed: 7)
        for _ in 0..<2_000 {
            var changed = bytes
            for _ in 0..<3 {
                changed[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
            }
            let rules = try? ZoneRules(parsing: changed)
            for time in [Int64.min, -1, 0, 1 << 41, Int64.max] {
                _ = rules?.local(at: WallClock(unixMilliseconds: time))
            }
        }
    }

    @Test("A date that the calendar lacks is none, and weekdays follow the calendar through leap days")
    func dates() throws {
        #expect(CivilDate(year: 2027, month: 2, day: 29) == nil && CivilDate(year: 2100, month: 2, day: 29) == nil)
        #expect(CivilDate(year: 2026, month: 4, day: 31) == nil && CivilDate(year: 2026, month: 13, day: 1) == nil)
        let leap = try #require(CivilDate(year: 2028, month: 2, day: 29))
        #expect(
            leap.weekday == .tuesday && leap.description == "2028-02-29" && leap.previous.description == "2028-02-28")
        for day in stride(from: Int64(-100_000), to: 100_000, by: 17) {
            let (year, month, number) = CivilDate(daysSince1970: day).numbers
            #expect(CivilDate(year: year, month: month, day: number)?.daysSince1970 == day)
        }
    }
}
