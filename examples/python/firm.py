"""Copies all folders that a token opens into a dictionary and a file. If anything is not proven, nothing is written.
GRANDLIVRE_URL=https://... GRANDLIVRE_TOKEN=glv_firm_... GRANDLIVRE_SECRET=glv_secret_... python3 firm.py firm.json"""
import decimal, gzip, hashlib, json, os, re, sys, time, urllib.request
TABLES = "folders exercices journals accounts payments banks axes sections vats movements".split()
def value(text, signs={"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}):
    return None if text == r"\N" else re.sub(r"\\(.)", lambda s: signs.get(s[1], s[1]), text) if "\\" in text else text
def check(holds, otherwise):
    if not holds: raise ValueError(otherwise)
def read_firm(lines):  # The ledgers by folder, each with its cursor and tables (columns, and rows by id), and the refusals.
    firm, refused, society, part, held, kind = {}, {}, None, [], 0, None
    while kind != "whole":
        line = lines.readline((16 << 20) + 2)
        check(line.endswith(b"\n"), "the answer is cut, or a line is too long")
        if not line.startswith(b"{"):
            part.append(line); held += len(line); check(held <= 1 << 20 or len(part) == 1, "1 MiB of rows came without a proof"); continue
        item, text = json.loads(line), b"".join(part)
        kind = next((kind for kind in ("ledger", "table", "end", "refused", "whole", "rows") if kind in item), None)
        is_due = kind in ("refused", *(then if society else ("ledger", "whole")))
        is_due &= not part or kind == "rows" or kind == "refused" and society is not None
        check(is_due, f"no place for {line[:99]}")
        if kind == "ledger":
            society, cursor, tables, digests, then = item[kind], item["cursor"], {}, {}, ["table"]
            check(society not in firm.keys() | refused.keys() and item["since"] is None, f"{society} comes twice, or in part")
        elif kind == "table":
            name, columns, rows, last, then = TABLES[len(tables)], item["columns"], {}, (), ["rows"]
            check(item[kind] == name, f"{item[kind]} comes instead of {name}")
            tables[name], digests[name] = {"columns": columns, "rows": rows}, hashlib.sha256()
            key = columns.index("movement_id") if name == "movements" else 0
        elif kind == "rows":
            proof = {"rows": len(part), "sha256": hashlib.sha256(text).hexdigest()}
            check(item == proof and (part or not rows), f"{name} of {society}: the rows are not those of their proof")
            for values in ([value(each) for each in row[:-1].decode().split("\t")] for row in part):
                before, last = last, (int(values[0]), int(values[key]))
                check(before < last and len(values) == len(columns), f"{name} {last} of {society} is out of order, or no row")
                rows[values[key]] = values
            digests[name].update(text)
            then, part, held = ["rows"] * bool(part) + ["end" if name == "movements" else "table"], [], 0
        elif kind == "end":
            sums = {side: sum(decimal.Decimal(row[columns.index(side)]) for row in rows.values()) for side in ("debit", "credit")}
            end = {"end": society, "rows": len(rows), "tables": {name: digests[name].hexdigest() for name in TABLES[:-1]}}
            end |= {side: f"{amount:.2f}" for side, amount in sums.items()}
            check(item == end, f"the end of {society} is not that of its rows")
            firm[society], society = {"cursor": cursor, "tables": tables}, None
        elif kind == "refused":
            check(society in (None, item[kind]) and item[kind] not in firm.keys() | refused.keys(), f"no place for {line[:99]}")
            refused[item[kind]], society, part, held = f"{item['code']}: {item['message']}", None, [], 0
    check(item == {"whole": len(firm), "refusals": len(refused)} and not lines.read(1), "the last line counts otherwise")
    return firm, refused
sys.excepthook = lambda kind, error, trace: print(f"Nothing was written: {error or kind.__name__}"[:500], file=sys.stderr)
opener = urllib.request.OpenerDirector()  # It follows no redirect: the secret would go with it.
for handler in (urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler): opener.add_handler(handler())
request = urllib.request.Request(f"{os.environ['GRANDLIVRE_URL']}/api/v1/mad/ledgers/changes?version=1.0.0", b"{}", {
    "Authorization": f"Bearer {os.environ['GRANDLIVRE_TOKEN']}", "X-Third-Party-Secret": os.environ["GRANDLIVRE_SECRET"],
    "Content-Type": "application/json", "Accept-Encoding": "gzip"})
while (answer := opener.open(request, timeout=120)).status in (429, 503): time.sleep(int(answer.headers["Retry-After"]))
if answer.status != 200: sys.exit(answer.read().decode() or f"{request.full_url} was answered with {answer.status}")
firm, refused = read_firm(gzip.GzipFile(fileobj=answer) if answer.headers["Content-Encoding"] == "gzip" else answer)
with open(f"{sys.argv[1]}.part", "w") as file: json.dump(firm, file)
os.replace(f"{sys.argv[1]}.part", sys.argv[1])
sys.exit("\n".join(f"{society} is not in it: {why}" for society, why in refused.items())) if refused else print(f"{len(firm)} folders")
