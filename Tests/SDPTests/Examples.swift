/// Descriptions as other agents write them, each with CR LF at its line ends.
enum Examples {
    static func lines(_ text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\r\n") + "\r\n"
    }

    /// RFC 8866 §5.
    static let rfc8866 = lines(
        """
        v=0
        o=jdoe 3724394400 3724394405 IN IP4 198.51.100.1
        s=Call to John Smith
        i=SDP Offer #1
        u=http://www.jdoe.example.com/home.html
        e=Jane Doe <jane@jdoe.example.com>
        p=+1 617 555-6011
        c=IN IP4 198.51.100.1
        t=0 0
        m=audio 49170 RTP/AVP 0
        m=audio 49180 RTP/AVP 0
        m=video 51372 RTP/AVP 99
        c=IN IP6 2001:db8::2
        a=rtpmap:99 h263-1998/90000
        """)

    /// RFC 3264 §10.1, first offer.
    static let rfc3264Offer = lines(
        """
        v=0
        o=alice 2890844526 2890844526 IN IP4 host.anywhere.com
        s=
        c=IN IP4 host.anywhere.com
        t=0 0
        m=audio 49170 RTP/AVP 0
        a=rtpmap:0 PCMU/8000
        m=video 51372 RTP/AVP 31
        a=rtpmap:31 H261/90000
        m=video 53000 RTP/AVP 32
        a=rtpmap:32 MPV/90000
        """)

    /// RFC 4568 §4.5, joined where it is folded for print.
    static let rfc4568 = lines(
        """
        v=0
        o=jdoe 2890844526 2890842807 IN IP4 10.47.16.5
        s=SDP Seminar
        i=A Seminar on the session description protocol
        u=http://www.example.com/seminars/sdp.pdf
        e=j.doe@example.com (Jane Doe)
        c=IN IP4 161.44.17.12/127
        t=2873397496 2873404696
        m=video 51372 RTP/SAVP 31
        a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj|2^20|1:32
        m=audio 49170 RTP/SAVP 0
        a=crypto:1 AES_CM_128_HMAC_SHA1_32 inline:NzB4d1BINUAvLEw6UzF3WSJ+PSdFcGdUJShpX1Zj|2^20|1:32
        m=application 32416 udp wb
        a=orient:portrait
        """)

    /// As a SIP telephone of the baresip kind offers: Opus and G.711, SDES with two suites.
    static let softphone = lines(
        """
        v=0
        o=- 2271803521 1102498327 IN IP4 192.0.2.10
        s=-
        c=IN IP4 192.0.2.10
        t=0 0
        a=tool:baresip 2.0.0
        m=audio 20012 RTP/SAVPF 96 0 8 101
        a=rtpmap:96 opus/48000/2
        a=fmtp:96 stereo=1;sprop-stereo=1;maxaveragebitrate=28000;useinbandfec=1
        a=rtpmap:0 PCMU/8000
        a=rtpmap:8 PCMA/8000
        a=rtpmap:101 telephone-event/8000
        a=fmtp:101 0-15
        a=rtcp:20013
        a=rtcp-mux
        a=crypto:1 AES_CM_128_HMAC_SHA1_32 inline:NzB4d1BINUAvLEw6UzF3WSJ+PSdFcGdUJShpX1Zj
        a=crypto:2 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj
        a=ssrc:3018274112 cname:sip:phone@example.com
        a=sendrecv
        a=label:1
        a=rtcp-rsize
        a=ptime:20
        m=video 20014 RTP/SAVPF 97
        a=rtpmap:97 H264/90000
        a=sendrecv
        """)

    /// As Chromium offers audio and a data channel, shortened in its codecs.
    static let chromium = lines(
        """
        v=0
        o=- 4611731400430051336 2 IN IP4 127.0.0.1
        s=-
        t=0 0
        a=group:BUNDLE 0 1
        a=extmap-allow-mixed
        a=msid-semantic: WMS 7f0f9a1e
        m=audio 9 UDP/TLS/RTP/SAVPF 111 63 9 0 8 13 110 126
        c=IN IP4 0.0.0.0
        a=rtcp:9 IN IP4 0.0.0.0
        a=candidate:1 1 udp 2122260223 192.0.2.7 56231 typ host generation 0
        a=ice-ufrag:4ZcD
        a=ice-pwd:2/1muCWoOi3uLifh0NuRHlZ9
        a=ice-options:trickle
        a=fingerprint:sha-256 6B:8B:F0:65:5F:78:E2:51:3B:AC:6F:F3:3F:46:1B:35:DC:B8:5F:64:1A:24:C2:43:F0:A1:58:D0:A1:2C:19:08
        a=setup:actpass
        a=mid:0
        a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level
        a=sendrecv
        a=msid:7f0f9a1e 3a1f
        a=rtcp-mux
        a=rtcp-rsize
        a=rtpmap:111 opus/48000/2
        a=rtcp-fb:111 transport-cc
        a=fmtp:111 minptime=10;useinbandfec=1
        a=rtpmap:63 red/48000/2
        a=fmtp:63 111/111
        a=rtpmap:9 G722/8000
        a=rtpmap:13 CN/8000
        a=rtpmap:110 telephone-event/48000
        a=ssrc:1399488325 cname:ix4nqy4rFMrCvZbN
        a=ssrc:1399488325 msid:7f0f9a1e 3a1f
        m=application 9 UDP/DTLS/SCTP webrtc-datachannel
        c=IN IP4 0.0.0.0
        a=mid:1
        a=sctp-port:5000
        """)

    /// As Firefox answers, with SDES put where its DTLS would be.
    static let firefoxLike = lines(
        """
        v=0
        o=mozilla...THIS_IS_SDPARTA-99.0 6129062164022937467 0 IN IP4 0.0.0.0
        s=-
        t=0 0
        a=sendrecv
        a=ice-options:trickle
        a=msid-semantic:WMS *
        m=audio 40000 RTP/SAVP 109
        c=IN IP6 2001:db8::1:7
        a=recvonly
        a=fmtp:109 maxplaybackrate=48000;stereo=1;useinbandfec=1;usedtx=1
        a=mid:0
        a=rtcp-mux
        a=rtpmap:109 opus/48000/2
        a=maxptime:60
        a=ptime:40
        a=crypto:1 AEAD_AES_128_GCM inline:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHA==|2^31
        a=ssrc:1234 cname:{c0ffee}
        """)

    static let all = [rfc8866, rfc3264Offer, rfc4568, softphone, chromium, firefoxLike]
}
