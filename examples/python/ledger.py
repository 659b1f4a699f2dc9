"""Keeps every fiscal year that a token opens in a file, of one folder or of all of a firm, and proves that it is the ledger.
Run it when books/<folder>/<year>.ndjson should be up to date. GRANDLIVRE_SOCIETY=26002 takes that folder of a firm alone.
GRANDLIVRE_URL=https://... GRANDLIVRE_TOKEN=glv_firm_... GRANDLIVRE_SECRET=glv_secret_... python3 ledger.py books"""
import bisect, hashlib, heapq, json, os, requests, sys
from requests.adapters import HTTPAdapter, Retry

session = requests.Session()
session.headers.update({"Accept": "application/x-ndjson", "X-Third-Party-Secret": os.environ["GRANDLIVRE_SECRET"],
                        "Authorization": f"Bearer {os.environ['GRANDLIVRE_TOKEN']}"})
# After 429 and 503 it waits for as long as Retry-After says.
session.mount("http", HTTPAdapter(max_retries=Retry(8, backoff_factor=1, status_forcelist=[429, 503])))

def ask(path, **query):
    """The lines of an answer and its cursor. A transfer that breaks off raises an exception. Redirects could leak the secret."""
    url = f"{os.environ['GRANDLIVRE_URL']}/api/v1/{path}"
    answer = session.get(url, params=query, stream=True, timeout=120, allow_redirects=False)
    if answer.status_code == 410: return None, None  # The cursor is too old, or of before a failover.
    if answer.status_code != 200: sys.exit(answer.text or f"{url} was answered with {answer.status_code}")
    return (line + b"\n" for line in answer.iter_lines(65536)), answer.headers.get("X-Ledger-Cursor")

def place(line):
    movement = json.loads(line)
    return int(movement["entry"]["producerId"]), int(movement["producerId"])

def keep(name, lines):
    with open(f"{name}.part", "wb") as new: new.writelines(lines)
    os.replace(f"{name}.part", name)

def replace(file, ranges, lines):
    """Drops the lines of entries in these ranges, and puts the new lines in their places."""
    if not ranges: return
    starts = [int(first) for first, _ in ranges]
    def is_kept(line):
        entry = place(line)[0]
        at = bisect.bisect(starts, entry) - 1
        return at < 0 or entry > int(ranges[at][1])
    with open(file, "rb") as old: keep(file, heapq.merge(filter(is_kept, old), lines, key=place))

def update(file, year):
    """The movements first, then their cursor: what has changed since an older cursor fits them, too. If it is refused, they
    stay, and `copy` compares them: nothing else says what differs."""
    kept = open(f"{file}.cursor").read() if os.path.exists(file) and os.path.exists(f"{file}.cursor") else None
    changes, cursor = ask("mad/movements", since=kept, **year) if kept else ask("mad/movements", **year)
    if not changes: return None
    if kept: replace(file, json.loads(next(changes))["entries"], changes)
    else: keep(file, changes)
    keep(f"{file}.cursor", [cursor.encode()])
    return cursor

def copy(file, year):
    for _ in range(10):
        cursor, (lines, proved) = update(file, year), ask("mad/movements/blocks", **year)
        blocks = [json.loads(line) for line in lines]
        if cursor and cursor != proved: continue  # The ledger has changed meanwhile.
        starts, digests = [int(block["from"]) for block in blocks], [hashlib.sha256() for _ in blocks]
        for line in open(file, "rb"): digests[bisect.bisect(starts, place(line)[0]) - 1].update(line)
        wrong = [(b["from"], b["to"]) for b, digest in zip(blocks, digests) if digest.hexdigest() != b["sha256"]]
        if len(wrong) > 100: wrong[99:] = [(wrong[99][0], wrong[-1][1])]  # The last range holds what lies between, too.
        if not wrong:
            keep(f"{file}.cursor", [proved.encode()])
            return print(f"{file}: {sum(b['rows'] for b in blocks)} movements, equal to the ledger in {len(blocks)} blocks")
        replace(file, wrong, ask("mad/movements", entries=",".join(map("-".join, wrong)), **year)[0])
        keep(f"{file}.cursor", [proved.encode()])  # Lines that are newer come once more, as changes since it.
    sys.exit(f"{file} still differs from the ledger after ten comparisons")

one = os.environ.get("GRANDLIVRE_SOCIETY")
for society in [one] if one else [json.loads(folder)["id"] for folder in ask("society")[0]]:
    session.headers["society-id"] = society
    os.makedirs(f"{sys.argv[1]}/{society}", exist_ok=True)
    for year in [json.loads(line)["producerId"] for line in ask("mad/exercices", version="1.0.0")[0]]:
        copy(f"{sys.argv[1]}/{society}/{year}.ndjson", {"version": "1.0.0", "idExercice": year})
