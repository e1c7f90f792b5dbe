import Foundation
import Testing

/// A folder with the files that broken configurations name.
struct BrokenSite {
    let folder: URL

    /// - Parameter text: The configuration: certificates are made only if it names some, for that takes a while.
    init(for text: String = "") throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("handset-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        if ["good.", "other.", "expired.", "early.", "ending."].contains(where: text.contains) {
            for name in ["good", "other"] { try makeCertificate(name) }
            try makeCertificate("expired", until: "20200102000000Z")
            try makeCertificate("early", from: "20980101000000Z")
            let soon = Date(timeIntervalSinceNow: 3.5 * 86_400).formatted(.iso8601)
            try makeCertificate("ending", until: soon.filter { $0.isNumber || $0 == "Z" })
        }
        for (name, text) in [
            ("token", "a-token-0123456789"), ("garbage.pem", "no PEM"), ("song.mp3", "ID3 and more than that"),
            ("users.yaml", "users:\n  - id: bob\n    colour: red\n"),
        ] {
            try #require(
                FileManager.default.createFile(
                    atPath: path(name), contents: Data(text.utf8), attributes: [.posixPermissions: 0o600]))
        }
    }

    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    func remove() { try? FileManager.default.removeItem(at: folder) }

    /// Writes a configuration, and returns its path.
    func write(_ text: String) throws -> String {
        let path = path("broken.yaml")
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    /// Makes `NAME.pem`, a certificate that signs itself, and `NAME.key`.
    private func makeCertificate(
        _ name: String, from start: String = "20200101000000Z", until end: String = "20991231000000Z"
    ) throws {
        let steps = """
            set -e
            cd "$1"; rm -f index.txt; touch index.txt; echo 01 > serial
            printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=index.txt\\nserial=serial\\nnew_certs_dir=.\\n' > ca.cnf
            printf 'default_md=sha256\\npolicy=p\\n[p]\\ncommonName=supplied\\n' >> ca.cnf
            openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -keyout "$2.key" -out csr
            openssl ca -batch -config ca.cnf -selfsign -keyfile "$2.key" -in csr -startdate "$3" \
                -enddate "$4" -out "$2.pem" -notext
            """
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", steps, "sh", folder.path, name, start, end]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "no certificate can be made")
    }
}
