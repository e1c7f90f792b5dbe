import Testing

@testable import HTTPTransport

@Suite struct CertificateFaultTests {
    @Test("The time since a certificate expired is written in words that fit the number")
    func days() {
        for (seconds, words) in [
            (1, "less than a day"), (86_399, "less than a day"), (86_400, "a day"), (172_799, "a day"),
            (172_800, "2 days"),
            (8_640_000, "100 days"),
        ] {
            #expect(CertificateFiles.days(seconds) == words, "\(seconds)")
        }
    }

    @Test("A certificate is warned of from two weeks before its end")
    func ending() {
        let day = 86_400
        #expect(CertificateFiles.warning(end: 100 * day, now: 86 * day - 1) == nil)
        #expect(CertificateFiles.warning(end: 100 * day, now: 86 * day)?.hasPrefix("ends in 14 days, ") == true)
        #expect(CertificateFiles.warning(end: 100 * day, now: 97 * day)?.hasPrefix("ends in 3 days, ") == true)
        #expect(CertificateFiles.warning(end: 100 * day, now: 101 * day)?.hasPrefix("expired a day ago, ") == true)
    }
}
