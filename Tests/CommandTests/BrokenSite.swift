import Foundation
import Testing

/// A folder with the files that broken configurations name.
struct BrokenSite {
    let folder: URL

    /// - Parameter text: The configuration: certificates are made only if it names some, for that takes a while.
    init(for text: String = "") throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("handset-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        if ["good.", "other.", "expired."].contains(where: text.contains) {
            for name in ["good", "other"] { try makeCertificate(name, isExpired: false) }
            try makeCertificate("expired", isExpired: true)
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
    private func makeCertificate(_ name: String, isExpired: Bool) throws {
        let steps = """
            set -e
            cd "$1"; rm -f index.txt; touch index.txt; echo 01 > serial
            printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=index.txt\\nserial=serial\\nnew_certs_dir=.\\n' > ca.cnf
            printf 'default_md=sha256\\npolicy=p\\n[p]\\ncommonName=supplied\\n' >> ca.cnf
            openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -keyout "$2.key" -out csr
            openssl ca -batch -config ca.cnf -selfsign -keyfile "$2.key" -in csr -startdate 20200101000000Z \
                -enddate "$3" -out "$2.pem" -notext
            """
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", steps, "sh", folder.path, name, isExpired ? "20200102000000Z" : "20991231000000Z"]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "no certificate can be made")
    }
}
