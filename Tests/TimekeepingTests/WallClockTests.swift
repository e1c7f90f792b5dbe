import Core
import Testing

@Suite("Times of day")
struct WallClockTests {
    @Test("A time in HTTP's form is that of RFC 9110, and is read back, before 1970 and on leap days, too")
    func httpDate() {
        #expect(WallClock(unixMilliseconds: 784_111_777_000).httpDate == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(WallClock(unixMilliseconds: 0).httpDate == "Thu, 01 Jan 1970 00:00:00 GMT")
        #expect(WallClock(unixMilliseconds: -1_000).httpDate == "Wed, 31 Dec 1969 23:59:59 GMT")
        #expect(WallClock(unixMilliseconds: 1_709_164_800_999).httpDate == "Thu, 29 Feb 2024 00:00:00 GMT")
        for day in stride(from: 0, to: 60_000, by: 17) {
            let time = WallClock(unixMilliseconds: Int64(day) * 86_400_000 + 40_271_000)
            #expect(RetryAfter.date(time.httpDate) == time)
        }
    }
}
