import SDP
import Testing

@Suite("Attributes of Opus and of keys")
struct AttributeTests {
    private static let key30 = "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj"

    @Test("RFC 7587 §7's parameters are read, with any spacing and case")
    func opusParameters() {
        let parameters = OpusParameters(
            parsing: "maxplaybackrate=16000; sprop-maxcapturerate=16000; MaxAverageBitrate=20000; stereo=1; "
                + "sprop-stereo = 1;cbr=1; useinbandfec=1; usedtx=0;minptime=10;future=7;broken;=;x=")
        #expect(parameters.maximumPlaybackRate == 16_000)
        #expect(parameters.sourceMaximumCaptureRate == 16_000)
        #expect(parameters.maximumAverageBitrate == 20_000)
        #expect(parameters.prefersStereo)
        #expect(parameters.sendsStereo)
        #expect(parameters.wantsConstantBitrate)
        #expect(parameters.usesInbandFEC)
        #expect(!parameters.wantsDTX)
        #expect(parameters.minimumPacketTimeMilliseconds == 10)
    }

    @Test("Impossible values leave the defaults or the nearest that is possible")
    func opusLimits() {
        let parameters = OpusParameters(
            parsing: "maxplaybackrate=1;maxaveragebitrate=9999999;minptime=0;stereo=-1;cbr=2;usedtx=99999999999999")
        #expect(parameters.maximumPlaybackRate == 8_000)
        #expect(parameters.maximumAverageBitrate == 510_000)
        #expect(parameters.minimumPacketTimeMilliseconds == 3)
        #expect(!parameters.prefersStereo)
        #expect(!parameters.wantsConstantBitrate)
        #expect(!parameters.wantsDTX)
        #expect(OpusParameters(parsing: "") == OpusParameters())
    }

    @Test(
        "Lists of telephone events are read as RFC 4733 §2.4.1 writes them, and what is none of that is passed over",
        arguments: [
            ("0-15", 0, true), ("0-15", 15, true), ("0-15", 16, false), ("0-11,16", 12, false), ("0-11,16", 16, true),
            ("0-11, 66, 70", 66, true), ("3", 3, true), ("3", 4, false), ("9-3", 5, false), ("-5", 5, false),
            ("5-", 5, false), ("1-2-9", 2, false), ("x,7", 7, true), ("300", 44, false), ("", 0, false),
            ("0-999", 0, false), (",,5", 5, true),
        ] as [(String, UInt8, Bool)])
    func events(list: String, event: UInt8, isTaken: Bool) {
        let events = NegotiatedTelephoneEvents(
            clockRate: 8_000, payloadTypes: PayloadTypes(send: 101, receive: 101), remoteEvents: list)
        #expect(events.takes(event) == isTaken)
    }

    @Test(
        "RFC 4568's key is read with its lifetime",
        arguments: [
            ("1 AES_CM_128_HMAC_SHA1_80 inline:\(key30)", nil),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:\(key30)|2^20", 1 << 20),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:\(key30)|2^48", 1 << 48),
            ("1 AES_CM_128_HMAC_SHA1_80 INLINE:\(key30)|800000 WSH=128 -FUTURE=1 KDR=0", 800_000),
        ] as [(String, UInt64?)])
    func keys(value: String, lifetime: UInt64?) throws {
        let crypto = try CryptoAttribute(parsing: value)
        #expect(crypto.tag == 1)
        #expect(crypto.key.suite == .aesCM128HMACSHA1)
        #expect(crypto.key.material == Array("wDfvg&T+)xG7@fb5jU,RaA}\\|p0%*#".utf8))
        #expect(crypto.lifetimePackets == lifetime)
    }

    @Test(
        "Lines that we could not honour are refused with the reason",
        arguments: [
            ("1 AES_CM_128_HMAC_SHA1_80", "a tag, a suite and a key"),
            ("x AES_CM_128_HMAC_SHA1_80 inline:\(key30)", "tag"),
            ("1234567890 AES_CM_128_HMAC_SHA1_80 inline:\(key30)", "tag"),
            ("1 F8_128_HMAC_SHA1_80 inline:\(key30)", "suite"),
            ("1 AES_CM_128_HMAC_SHA1_80 uri:\(key30)", "inline"),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:", "30 bytes"),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:\(key30.dropLast(4))", "30 bytes"),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:\(key30)AAAA", "30 bytes"),
            ("1 AEAD_AES_128_GCM inline:\(key30)", "28 bytes"),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:\(key30)|2^20|1:4", "MKI"),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:\(key30)|1:4", "MKI"),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:\(key30)|1:4;inline:\(key30)|2:4", "several"),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:\(key30)|2^49", "lifetime"),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:\(key30)|2^64", "lifetime"),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:\(key30)|0", "lifetime"),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:\(key30)|", "lifetime"),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:\(key30)|5|6", "lifetime"),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:\(key30) UNENCRYPTED_SRTP", "session parameter"),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:\(key30) KDR=5", "session parameter"),
        ])
    func refusedKeys(value: String, reason: String) {
        do {
            _ = try CryptoAttribute(parsing: value)
            Issue.record("accepted")
        } catch {
            #expect(error.reason.contains(reason))
            #expect(!error.reason.contains("d0Rm"))
        }
    }
}
