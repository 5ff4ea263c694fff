#!/usr/bin/env python3
"""Makes queries that are issues, and the trees to search: issues.py MIRRORS OUT [--rust ISSUES.json] REPO...

MIRRORS/OWNER+NAME/repo are bare git folders; `RosePasta+Denchmark_BRs` among them has issues with the commits that resolved them. ISSUES.json has
{"OWNER__NAME-NUMBER": text}, the texts of the issues of pull requests. A REPO is OWNER+NAME. The lines that the commit changed, without tests, are the
answer. Each repository has up to three base commits; an issue is searched in the last one before its change, with the lines mapped to it.
Writes OUT/issues.jsonl and OUT/trees/NAME-N. At most 40 issues of a repository, drawn with a fixed seed."""
import argparse, collections, json, os, random, re, subprocess

SOURCE = re.compile(r"\.(py|rs|go|js|jsx|ts|tsx|java|c|cc|cpp|cxx|cu|h|hpp|cs|rb|php|swift|kt|scala|vue|sh|m|mm)$")
TEST = re.compile(r"(^|/)(tests?|__tests__|specs?|testdata|testing|benches|examples?)(/|$)|(_test|\.test|\.spec|_spec|Tests?)\.[a-z]+$"
                  r"|(^|/)test_[^/]*$|(^|/)conftest\.py$", re.I)
BINARY = re.compile(r"\.(png|jpe?g|ipynb|bin|onnx|gif|svg|ttf|woff2?|zip|gz|pdf|mp4|wav)$", re.I)
DATASET, MOST, BASES, MAX_FILES, MAX_BYTES = "RosePasta+Denchmark_BRs", 40, 3, 4, 800_000


class Repo:
    def __init__(self, mirrors, name):
        self.name, self.git_dir = name, f"{mirrors}/{name}/repo"

    def git(self, *args, **more):
        run = subprocess.run(["git", "--git-dir", self.git_dir, *args], capture_output=True, **more)
        return run.stdout if run.returncode == 0 else None

    def text(self, *args):
        out = self.git(*args)
        return None if out is None else out.decode("utf-8", "replace")

    def changed(self, commit):
        """Old line ranges of the sources that a commit changes; None without the commit."""
        diff = self.text("diff", "-U0", "--no-color", "--no-renames", f"{commit}^", commit)
        if diff is None: return None
        files, path = collections.defaultdict(list), None
        for line in diff.split("\n"):
            if line.startswith("--- "):
                path = None if line == "--- /dev/null" else line[6:].split("\t")[0]
            elif line.startswith("@@") and path:
                start, count = re.match(r"@@ -(\d+)(?:,(\d+))? ", line).groups()
                start, count = max(int(start), 1), int(count or 1)
                files[path].append((start, max(start + count - 1, start)))
        return {p: r for p, r in files.items() if SOURCE.search(p) and not TEST.search(p)}

    def mapped(self, base, parent, path, ranges):
        """Ranges of a file at `parent` as lines at `base`; None if `base` has no such file."""
        if self.git("cat-file", "-e", f"{base}:{path}") is None: return None
        diff = self.text("diff", "-U0", "--no-color", "--no-renames", base, parent, "--", path) or ""
        hunks = [[int(x) if x else 1 for x in h] for h in re.findall(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", diff, re.M)]

        def line_of(line):
            shift = 0
            for old, removed, new, added in hunks:
                start = new if added else new + 1
                if start <= line < start + added: return None
                if line >= start + added: shift = (old + (removed or 1)) - (new + (added or 1))
            return line + shift
        both = [(line_of(a), line_of(b)) for a, b in ranges]
        return [[a, b] for a, b in both if a and b and a <= b]

    def write(self, commit, folder):
        """The text files of a commit, as far as the mirror has them."""
        rows = (re.match(r"(\d+) blob (\w+)\s+(\d+)\t(.*)$", line) for line in self.text("ls-tree", "-r", "-l", commit).split("\n"))
        files = [(m[2], m[4]) for m in rows if m and m[1] != "120000" and int(m[3]) <= MAX_BYTES and not BINARY.search(m[4])]
        out, at = self.git("cat-file", "--batch", input="".join(sha + "\n" for sha, _ in files).encode()), 0
        for _, path in files:
            end = out.index(b"\n", at); head = out[at:end].split(); at = end + 1
            if len(head) < 3: continue
            os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
            open(f"{folder}/{path}", "wb").write(out[at:at + int(head[2])]); at += int(head[2]) + 1


def plain(text):
    """A text of the data set as Markdown."""
    text = re.sub(r"<denchmark-h:h\d>(.*?)</denchmark-h>", r"### \1", text or "")
    text = re.sub(r"<denchmark-link:[^>]*>(.*?)</denchmark-link>", r"\1", text, flags=re.S)
    text = text.replace("<denchmark-code>", "```\n").replace("</denchmark-code>", "\n```")
    return "\n".join(line.removeprefix(" ") for line in text.split("\n")).strip()


def of_dataset(data, repo):
    """(id, text, commit) of the issues of a repository in the data set."""
    folder = f"JSonSet/fulljson/{repo.name.lower()}"
    paths = (data.text("ls-tree", "-r", "--name-only", "HEAD", folder) or "").split()
    random.Random(5).shuffle(paths)
    for path in paths:
        row = json.loads(data.text("show", f"HEAD:{path}"))
        text = row["BR"]["BR_text"]
        yield f"{repo.name.lower()}-{row['BR']['BR_id']}", f"{plain(text['BRsummary'])}\n\n{plain(text['BRdescription'])}", row["commit"]["commit_id"]


def of_pull_requests(texts, repo):
    """(id, text, commit) of the issues in ISSUES.json whose pull request is in the log."""
    commits = {}
    for line in (repo.text("log", "--format=%H %s", "HEAD") or "").split("\n"):
        number = re.search(r"\(#(\d+)\)$|^\w+ Merge pull request #(\d+) ", line)
        if number: commits.setdefault(number[1] or number[2], line.split()[0])
    for name, text in texts.items():
        owner_and_name, number = name.rsplit("-", 1)
        if owner_and_name.replace("__", "+") == repo.name and number in commits:
            yield name, text.replace("\r\n", "\n"), commits[number]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("mirrors"); ap.add_argument("out"); ap.add_argument("repos", nargs="+"); ap.add_argument("--rust")
    a = ap.parse_args()
    data, texts = Repo(a.mirrors, DATASET), json.load(open(a.rust)) if a.rust else {}
    os.makedirs(a.out, exist_ok=True)
    with open(f"{a.out}/issues.jsonl", "w") as out:
        for repo in (Repo(a.mirrors, name) for name in a.repos):
            found = []
            for name, text, commit in [*of_dataset(data, repo), *of_pull_requests(texts, repo)]:
                files = repo.changed(commit)
                if files and len(files) <= MAX_FILES and len(text) >= 40 and len(found) < MOST:
                    parent = repo.text("rev-parse", f"{commit}^").strip()
                    found.append((int(repo.text("show", "-s", "--format=%ct", parent)), name, text, parent, files))
            found.sort(key=lambda x: x[0])
            bases = BASES if len(found) >= 3 * BASES else 1
            for n, (_, name, text, parent, files) in enumerate(found):
                at = n * bases // len(found)
                base, folder = found[-(-at * len(found) // bases)][3], f"{repo.name.split('+')[1].lower()}-{at}"
                right = [{"path": p, "ranges": r} for p, r in ((p, repo.mapped(base, parent, p, r)) for p, r in files.items()) if r is not None]
                if not right: continue
                if not os.path.exists(f"{a.out}/trees/{folder}"): repo.write(base, f"{a.out}/trees/{folder}")
                out.write(json.dumps({"repo": folder, "query_id": name, "kind": "issue", "query": text, "relevant": right}) + "\n")


if __name__ == "__main__":
    main()
