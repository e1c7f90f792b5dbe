extension HTMLPage {
    /// One style sheet within the page: it must be whole when it is mailed.
    static let style = """
        :root{color-scheme:light dark;--ground:#f4f6f9;--card:#fff;--ink:#16202e;--soft:#5a6779;--line:#dfe4eb;\
        --accent:#1f66d1;--band:#1f66d133;--second:#b4560a;--good:#0f7b4a;--goodsoft:#dff3e8;--bad:#b4232f;\
        --badsoft:#fbe4e5;--region:#1f66d10f;--stage:#1f66d1;--onstage:#fff}
        @media(prefers-color-scheme:dark){:root{--ground:#0e131a;--card:#161d27;--ink:#e7edf5;--soft:#97a5b8;\
        --line:#2a3442;--accent:#6ea8ff;--band:#6ea8ff3a;--second:#f0a35e;--good:#5fd39b;--goodsoft:#12362a;\
        --bad:#ff8a90;--badsoft:#431c22;--region:#6ea8ff14;\
        --stage:#6ea8ff;--onstage:#0b121c}}
        *{box-sizing:border-box}
        body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,"Segoe UI",Roboto,\
        "Noto Sans",sans-serif;font-variant-numeric:tabular-nums}
        main{max-width:1120px;margin:0 auto;padding:32px 20px 64px}
        header{display:flex;flex-wrap:wrap;gap:12px 20px;align-items:center;margin-bottom:20px}
        h1{font-size:26px;line-height:1.2;margin:0;letter-spacing:-.01em}
        h2{font-size:17px;margin:0 0 2px}
        header p,.note{color:var(--soft);margin:2px 0 0;font-size:14px}
        .note{margin:0 0 10px}
        .badge{margin-left:auto;font-weight:650;font-size:18px;padding:8px 18px;border-radius:999px}
        .passed{color:var(--good);background:var(--goodsoft)}
        .failed{color:var(--bad);background:var(--badsoft)}
        .unmeasured{color:var(--soft);background:var(--line)}
        .tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:12px;margin:0 0 16px;padding:0}
        .tile,section{background:var(--card);border:1px solid var(--line);border-radius:14px}
        .tile{padding:13px 14px}
        .tile dt{color:var(--soft);font-size:13px}
        .tile dd{margin:2px 0 0;font-size:20px;font-weight:650;letter-spacing:-.02em;line-height:1.25}
        .tile dd small{display:block;font-size:13px;font-weight:400;letter-spacing:0;color:var(--soft);margin-top:4px}
        section{padding:18px 20px;margin-bottom:16px}
        .pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(400px,1fr));gap:0 16px}
        @media(max-width:520px){.pair{grid-template-columns:1fr}}
        svg{display:block;width:100%;height:auto;overflow:visible}
        svg text{font-size:12px;fill:var(--soft)}
        svg .value{fill:var(--ink);font-weight:600}
        .grid{stroke:var(--line)}.faint{stroke-dasharray:2 4}
        .line{fill:none;stroke:var(--accent);stroke-width:2;stroke-linejoin:round}
        .second{fill:none;stroke:var(--second);stroke-width:2;stroke-linejoin:round}
        .band{fill:var(--band)}.region{fill:var(--region)}.bar{fill:var(--accent)}.bar2{fill:var(--second)}
        .mark line{stroke:var(--bad);stroke-opacity:.45}.mark circle{fill:var(--bad)}
        .limit{stroke:var(--bad);stroke-dasharray:6 4}svg .limit-label{fill:var(--bad)}
        .scroll{overflow-x:auto}
        table{border-collapse:collapse;width:100%;font-size:14px}
        caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
        th,td{text-align:left;padding:7px 12px 7px 0;border-bottom:1px solid var(--line);vertical-align:top}
        thead th{color:var(--soft);font-weight:500}tbody th{font-weight:500}tr:last-child>*{border-bottom:0}
        .chip{display:inline-block;padding:1px 10px;border-radius:999px;font-size:13px;font-weight:600;\
        white-space:nowrap}
        details{margin-top:10px;font-size:14px}summary{cursor:pointer;color:var(--accent)}
        .stages{display:flex;border-radius:10px;overflow:hidden;margin:10px 0 8px;gap:2px}
        .stages div{background:var(--stage);color:var(--onstage);min-width:3px;height:34px;line-height:34px;padding:0 0 0 10px;\
        font-size:13px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis}
        .stages div:nth-child(even){background:var(--second)}
        .advised>*{border-bottom:0}.advice td{color:var(--soft);padding-top:0}
        @media(max-width:700px){section{overflow-x:auto;padding:16px 14px}svg.wide{min-width:680px}\
        main{padding:20px 12px 40px}}
        footer{color:var(--soft);font-size:13px;margin-top:20px}
        @media print{body{background:#fff}section,.tile{break-inside:avoid}}
        """
}
