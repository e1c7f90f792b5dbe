/// The tones of a telephone, as countries have them (ITU-T E.180, Supplement 2).
public enum CallTone: String, BitwiseCopyable, CaseIterable, Sendable {
    /// The line is ready.
    case dial
    /// The far end is being called.
    case ringBack
    /// The far end is busy.
    case busy
    /// The network is, or the call failed.
    case congestion
    /// An incoming call: a warble for the loudspeaker, in the country's rhythm.
    case ring
}

/// One tone's frequencies and rhythm.
public struct CallTonePattern: Equatable, Sendable {
    /// One or two frequencies that sound together, in Hz; 0 for none.
    public var firstHz: Double
    /// The second, in Hz; 0 for none.
    public var secondHz: Double
    /// Milliseconds of sound and silence, alternating and repeated; empty for a continuous tone.
    public var cadence: [Int]
    /// The two frequencies alternate every 40 ms instead of sounding together.
    public var warbles = false

    init(_ firstHz: Double, _ secondHz: Double = 0, _ cadence: [Int] = []) {
        self.firstHz = firstHz
        self.secondHz = secondHz
        self.cadence = cadence
    }
}

/// A country's tones.
public struct CallToneSet: Equatable, Sendable {
    private let dial: CallTonePattern
    private let ringBack: CallTonePattern
    private let busy: CallTonePattern
    private let congestion: CallTonePattern

    /// The tones of a country by its ISO 3166 code, in either case.
    ///
    /// - Returns: What E.180 recommends, 425 Hz in its usual rhythms, for countries that are not in the table.
    public init(country: String) { self = Self.table[country.uppercased()] ?? Self.recommended }

    /// Countries whose tones differ from what is recommended, or are known to be just that.
    public static var countries: [String] { table.keys.sorted() }

    /// The pattern of `tone`.
    public func pattern(_ tone: CallTone) -> CallTonePattern {
        switch tone {
        case .dial: return dial
        case .ringBack: return ringBack
        case .busy: return busy
        case .congestion: return congestion
        case .ring:
            var ring = CallTonePattern(784, 988, ringBack.cadence)
            ring.warbles = true
            return ring
        }
    }

    private init(
        _ dial: CallTonePattern, _ ringBack: CallTonePattern, _ busy: CallTonePattern, _ congestion: CallTonePattern
    ) {
        (self.dial, self.ringBack, self.busy, self.congestion) = (dial, ringBack, busy, congestion)
    }

    /// One frequency for all four.
    private static func plain(_ hertz: Double, ringBack: [Int], busy: [Int], congestion: [Int], dial: [Int] = [])
        -> Self
    {
        Self(
            CallTonePattern(hertz, 0, dial), CallTonePattern(hertz, 0, ringBack), CallTonePattern(hertz, 0, busy),
            CallTonePattern(hertz, 0, congestion))
    }

    private static let recommended = plain(425, ringBack: [1_000, 4_000], busy: [500, 500], congestion: [250, 250])

    private static let northAmerica = Self(
        CallTonePattern(350, 440), CallTonePattern(440, 480, [2_000, 4_000]), CallTonePattern(480, 620, [500, 500]),
        CallTonePattern(480, 620, [250, 250]))

    private static let table: [String: CallToneSet] = [
        "US": northAmerica, "CA": northAmerica,
        "GB": Self(
            CallTonePattern(350, 440), CallTonePattern(400, 450, [400, 200, 400, 2_000]),
            CallTonePattern(400, 0, [375, 375]), CallTonePattern(400, 0, [400, 350, 225, 525])),
        "IE": Self(
            CallTonePattern(425), CallTonePattern(400, 450, [400, 200, 400, 2_000]),
            CallTonePattern(425, 0, [500, 500]), CallTonePattern(425, 0, [250, 250])),
        "AU": Self(
            CallTonePattern(413, 438), CallTonePattern(400, 450, [400, 200, 400, 2_000]),
            CallTonePattern(425, 0, [375, 375]), CallTonePattern(425, 0, [375, 375])),
        "JP": Self(
            CallTonePattern(400), CallTonePattern(384, 416, [1_000, 2_000]), CallTonePattern(400, 0, [500, 500]),
            CallTonePattern(400, 0, [500, 500])),
        "IN": Self(
            CallTonePattern(375, 425), CallTonePattern(375, 425, [400, 200, 400, 2_000]),
            CallTonePattern(400, 0, [750, 750]), CallTonePattern(400, 0, [250, 250])),
        "AT": plain(420, ringBack: [1_000, 5_000], busy: [400, 400], congestion: [200, 200]),
        "BR": plain(425, ringBack: [1_000, 4_000], busy: [250, 250], congestion: [250, 250, 750, 250]),
        "CH": plain(425, ringBack: [1_000, 4_000], busy: [500, 500], congestion: [200, 200]),
        "CN": plain(450, ringBack: [1_000, 4_000], busy: [350, 350], congestion: [700, 700]),
        "DE": plain(425, ringBack: [1_000, 4_000], busy: [480, 480], congestion: [240, 240]),
        "ES": plain(
            425, ringBack: [1_500, 3_000], busy: [200, 200], congestion: [200, 200, 200, 200, 200, 600]),
        "FR": plain(440, ringBack: [1_500, 3_500], busy: [500, 500], congestion: [250, 250]),
        "IT": plain(
            425, ringBack: [1_000, 4_000], busy: [500, 500], congestion: [200, 200], dial: [200, 200, 600, 1_000]),
        "NL": plain(425, ringBack: [1_000, 4_000], busy: [500, 500], congestion: [250, 250]),
        "SE": plain(425, ringBack: [1_000, 5_000], busy: [250, 250], congestion: [250, 750]),
    ]
}

extension CallToneSet {
    /// Whether `code` is the ISO 3166 code of a country, in either case. Those without tones of their own here have what
    /// E.180 recommends.
    public static func isCountry(_ code: String) -> Bool { codes.contains(code.uppercased()) }

    /// ISO 3166-1 alpha-2, as officially assigned.
    private static let codes = Set(
        """
        AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY \
        BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK \
        FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR \
        IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK \
        ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM \
        PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF \
        TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
        """.split(separator: " ").map(String.init))
}
