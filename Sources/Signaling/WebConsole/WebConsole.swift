// WebConsole: the page at which people look at a device's calls, embedded in the program.

public import WebPhone

/// All files of the page, by the paths at which a browser asks for them. What it shares with the web phone has the paths of that.
public enum WebConsole {
    /// The file at `path`, which is compared literally: only the names of this table are ever found.
    public static func asset(at path: String) -> WebAsset? {
        if let own = assets[path] { return own }
        return shared.contains(path) ? WebPhone.asset(at: path) : nil
    }

    /// The paths of all files.
    public static var paths: [String] { (assets.keys + shared).sorted() }

    private static let script = "text/javascript; charset=utf-8"

    private static let assets: [String: WebAsset] = [
        "/": WebAsset("text/html; charset=utf-8", PackageResources.index_html),
        "/console/console.css": WebAsset("text/css; charset=utf-8", PackageResources.console_css),
        "/console/main.js": WebAsset(script, PackageResources.main_js),
        "/console/client.js": WebAsset(script, PackageResources.client_js),
        "/console/events.js": WebAsset(script, PackageResources.events_js),
        "/console/figures.js": WebAsset(script, PackageResources.figures_js),
        "/console/calls.js": WebAsset(script, PackageResources.calls_js),
        "/console/call.js": WebAsset(script, PackageResources.call_js),
        "/console/history.js": WebAsset(script, PackageResources.history_js),
        "/console/record.js": WebAsset(script, PackageResources.record_js),
        "/console/timeline.js": WebAsset(script, PackageResources.timeline_js),
        "/console/axis.js": WebAsset(script, PackageResources.axis_js),
        "/console/counters.js": WebAsset(script, PackageResources.counters_js),
        "/console/sound.js": WebAsset(script, PackageResources.sound_js),
        "/console/recording.js": WebAsset(script, PackageResources.recording_js),
        "/console/player.js": WebAsset(script, PackageResources.player_js),
        "/console/route.js": WebAsset(script, PackageResources.route_js),
        "/console/text.js": WebAsset(script, PackageResources.text_js),
    ]

    private static let shared = [
        "/phone/backoff.js", "/phone/elements.js", "/phone/icon.svg", "/phone/phone.css", "/phone/plot.js",
    ]
}
