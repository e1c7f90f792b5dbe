import CallAgent
import CallControl
import Testing
import Core

@Suite("A clock that cannot be right")
struct ClockPlausibilityTests {
    private func time(_ seconds: Int64) -> WallClock { WallClock(unixMilliseconds: seconds * 1_000) }

    @Test("The time of a board without a battery, and one long after the program, cannot be right")
    func plausibility() {
        for seconds: Int64 in [-1, 0, 1_577_836_800, 1_793_491_199, 2_208_988_800, .max / 1_000] {
            #expect(!ClockPlausibility.canBeRight(time(seconds)), "\(seconds)")
        }
        for seconds: Int64 in [1_793_491_200, 1_830_000_000, 2_000_000_000] {
            #expect(ClockPlausibility.canBeRight(time(seconds)), "\(seconds)")
        }
    }

    @Test("Only a certificate is worth another try when the time is another, and only while the clock cannot be right")
    func reason() {
        func error(_ code: SignalingError.Code) -> SignalingError {
            SignalingError(code, activity: "log in", cause: "it was refused")
        }
        #expect(ClockPlausibility.isReason(for: error(.certificateNotTrusted), at: time(0)))
        #expect(!ClockPlausibility.isReason(for: error(.certificateNotTrusted), at: time(1_800_000_000)))
        #expect(!ClockPlausibility.isReason(for: error(.loginRefused), at: time(0)))
    }
}
