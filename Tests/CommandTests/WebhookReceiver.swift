import Foundation
import TestSupport
import Testing

/// A server in Python, so that the signature is checked by another program. It notes each request, and answers as the file `mode`
/// says: with a status, or `hang`, which is no answer.
struct WebhookReceiver {
    struct Request {
        let id: Substring
        let type: Substring
        let isSigned: Bool
    }

    private static let program = """
        import base64, hashlib, hmac, http.server, json, pathlib, sys, time
        folder = pathlib.Path(sys.argv[2])
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                name, time_sent = self.headers["webhook-id"], self.headers["webhook-timestamp"]
                secret = (folder / "hook.secret").read_bytes()
                code = hmac.new(secret, f"{name}.{time_sent}.".encode() + body, hashlib.sha256).digest()
                given = self.headers["webhook-signature"].split(" ")
                right = "v1," + base64.b64encode(code).decode() in given and abs(time.time() - int(time_sent)) < 300
                with open(folder / "received", "a") as file:
                    print(name, json.loads(body)["type"], right, file=file)
                mode = (folder / "mode").read_text()
                if mode == "hang": time.sleep(3600)
                self.send_response(int(mode))
                self.send_header("content-length", "0")
                self.end_headers()
            def log_message(self, *arguments): pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
        print("Listening", server.server_port, file=sys.stderr, flush=True)
        server.serve_forever()
        """

    let process: HandsetProcess
    let port: Int
    private let site: Site

    init(_ site: Site, port: Int = 0) async throws {
        self.site = site
        process = try HandsetProcess(
            ["python3", "-c", Self.program, "\(port)", site.folder.path], executable: "/usr/bin/env")
        let line = try await process.line(containing: "Listening")
        self.port = try #require(line.split(separator: " ").last.flatMap { Int($0) })
    }

    func answer(_ mode: String) throws {
        try mode.write(toFile: site.path("mode"), atomically: true, encoding: .utf8)
    }

    var requests: [Request] {
        let text = (try? String(contentsOfFile: site.path("received"), encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map { line in
            let words = line.split(separator: " ")
            return Request(id: words[0], type: words[1], isSigned: words[2] == "True")
        }
    }

    var types: [Substring] { requests.map(\.type) }
}
