import ConfigReader
import Monitoring
import Testing

@Suite("Metrics as text")
struct MetricPageTests {
    private let calls = Metric("calls_total", .counter, "Calls: \\ and\nmore", by: ["account", "reason"])
    private let load = Metric("load_ratio", .gauge, "Load")
    private let delay = Metric("delay_seconds", .histogram, "Delay", by: ["account"])

    @Test("All samples of a metric are together, below its help and its kind, also if they are added in turn")
    func families() {
        var page = MetricPage()
        page.add(calls, 1, ["a", "busy"])
        page.add(load, 0.25)
        page.add(calls, 2, ["b", "busy"])
        #expect(
            page.text == """
                # HELP calls_total Calls: \\\\ and\\nmore
                # TYPE calls_total counter
                calls_total{account="a",reason="busy"} 1
                calls_total{account="b",reason="busy"} 2
                # HELP load_ratio Load
                # TYPE load_ratio gauge
                load_ratio 0.25

                """)
        #expect(page.metrics == [calls, load])
    }

    @Test("A label's quotation marks, backslashes and line ends are escaped")
    func escapes() {
        var page = MetricPage()
        page.add(calls, 1, ["a\"b\\c\nd", ""])
        #expect(page.text.contains(#"calls_total{account="a\"b\\c\nd",reason=""} 1"#))
    }

    @Test(
        "Numbers are written as the format has them",
        arguments: [
            (0.0, "0"), (-3, "-3"), (0.1, "0.1"), (1e-7, "1e-07"), (9_007_199_254_740_991, "9007199254740991"),
            (1e300, "1e+300"), (.infinity, "+Inf"), (-.infinity, "-Inf"), (.nan, "NaN"),
        ])
    func numbers(value: Double, text: String) {
        var page = MetricPage()
        page.add(load, value)
        #expect(page.text.hasSuffix("\nload_ratio \(text)\n"))
    }

    @Test("A histogram's buckets have all observations up to their bound, and the last one has all")
    func histogram() {
        var histogram = MetricHistogram(bounds: [0.1, 0.5])
        for value in [0.1, 0.2, 0.5, 7, .nan] { histogram.observe(value) }
        var page = MetricPage()
        page.add(delay, histogram, ["a"])
        #expect(
            page.text.hasSuffix(
                """
                delay_seconds_bucket{account="a",le="0.1"} 1
                delay_seconds_bucket{account="a",le="0.5"} 3
                delay_seconds_bucket{account="a",le="+Inf"} 4
                delay_seconds_sum{account="a"} 7.8
                delay_seconds_count{account="a"} 4

                """))
    }
}
