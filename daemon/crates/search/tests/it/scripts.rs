//! Searches in scripts other than Latin, judged by the text itself, and files of languages without
//! a grammar.

use std::collections::BTreeSet;

use cairn_protocol::map::MapParams;
use cairn_protocol::search::{SearchAnswer, SearchParams};
use cairn_search::CancelFlag;
use cairn_test_support::{Rng, random};
use serde_json::json;

use crate::fixture::{TestRoot, hybrid, lexical, write_file};

/// Words of comments in each language; Korean separates its words, the others do not.
const WORDS: &[(&str, &str)] = &[
    (
        "",
        "读取 配置 文件 并 检查 参数 是否 有效 如果 失败 则 返回 错误 连接 数据库 关闭 日志 线程 安全 队列 \
         内存 分配 释放 缓存 更新 索引 查询 结果 排序 网络 请求 超时 重试 用户 密码 加密",
    ),
    (
        "",
        "設定 ファイル を 読み込み 関係 データベース に 接続 する エラー が 発生 した 場合 は 再試行 キャッシュ \
         更新 検索 結果 並べ替え 利用者 パスワード 暗号化 スレッド 終了 メモリ 解放 の",
    ),
    (
        " ",
        "설정 파일을 읽고 매개변수를 검사한다 실패하면 오류를 반환한다 데이터베이스에 연결 로그를 기록 스레드 \
         대기열 메모리를 해제 캐시를 갱신 색인 검색 결과를 정렬 사용자 비밀번호 암호화",
    ),
];

fn comment(rng: &mut Rng, (space, words): &(&str, &str)) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    let chosen: Vec<&str> =
        (0..rng.usize(4..12)).map(|_| words[rng.usize(..words.len())]).collect();
    chosen.join(space)
}

/// Files with comments and code; each file is shorter than a window.
fn corpus(rng: &mut Rng) -> Vec<(String, String)> {
    (0..60)
        .map(|n| {
            let language = &WORDS[n % WORDS.len()];
            let mut text = String::new();
            for f in 0..rng.usize(1..4) {
                let line = comment(rng, language);
                text.push_str(&format!("// {line}。\nfn step_{n}_{f}() {{\n    run({f});\n}}\n\n"));
            }
            (format!("src/part_{n}.rs"), text)
        })
        .collect()
}

/// A part of a comment of two to four characters.
fn part(rng: &mut Rng, text: &str) -> Option<String> {
    let comments: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("// ")?.strip_suffix('。')).collect();
    let chars: Vec<char> = comments[rng.usize(..comments.len())].chars().collect();
    let length = rng.usize(2..=4);
    let from = rng.usize(..chars.len().checked_sub(length)? + 1);
    let part = &chars[from..from + length];
    part.iter().all(|c| !c.is_whitespace()).then(|| part.iter().collect())
}

fn params(query: &str, k: u32) -> SearchParams {
    SearchParams { k, ..SearchParams::new(query) }
}

fn paths(answer: &SearchAnswer) -> Vec<&str> {
    answer.items.iter().map(|item| item.path.as_str()).collect()
}

fn semantic(root: &TestRoot, query: &str) -> SearchAnswer {
    root.indexes.semantic(&params(query, 20), &CancelFlag::new(), &|_| {}).unwrap()
}

#[test]
fn every_part_of_a_comment_is_found_where_the_text_contains_it() {
    let mut rng = random("every_part_of_a_comment");
    let files = corpus(&mut rng);
    let root = TestRoot::from_tree(|top| {
        files.iter().for_each(|(path, text)| write_file(top, path, text));
    });
    root.build();
    let (mut missing, mut late, mut rare) = (Vec::new(), Vec::new(), 0);
    for _ in 0..400 {
        let (_, text) = &files[rng.usize(..files.len())];
        let Some(part) = part(&mut rng, text) else { continue };
        let by_text: BTreeSet<&str> = files
            .iter()
            .filter(|(_, text)| text.contains(&part))
            .map(|(path, _)| path.as_str())
            .collect();
        let answer = lexical(&root.indexes, &params(&part, 200));
        let found = paths(&answer);
        if !by_text.iter().all(|path| found.contains(path)) {
            missing.push(part.clone());
        }
        assert!(!answer.weak, "{part}");
        if by_text.len() <= 3 {
            rare += 1;
            if !by_text.iter().all(|path| found.iter().take(5).any(|f| f == path)) {
                late.push(part);
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
    assert!(rare > 20, "{rare}");
    assert_eq!(late, Vec::<String>::new(), "of {rare}");
}

#[test]
fn part_of_a_word_is_highlighted_at_its_characters() {
    let root = TestRoot::new(&[
        ("a.py", "# 这个函数读取配置文件。\ndef read_settings():\n    return open('x')\n"),
        ("b.py", "# 关闭连接\ndef close():\n    pass\n"),
    ]);
    root.build();
    for (query, marked) in [("配置", "配置"), ("取配置文", "取配置文"), ("函数", "函数")]
    {
        let params = SearchParams { include_text: true, ..params(query, 5) };
        let answer = lexical(&root.indexes, &params);
        let first = answer.items.iter().find(|item| !item.highlights.is_empty()).unwrap();
        let text = first.text.as_ref().unwrap();
        let [from, to] = first.highlights[0];
        assert_eq!(&text[from as usize..to as usize], marked, "{text}");
        assert_eq!(paths(&answer), ["a.py"], "{query}");
    }
}

#[test]
fn semantic_search_names_the_script_that_the_table_does_not_know() {
    let root = TestRoot::new(&[
        ("a.rs", "// 读取配置文件\nfn read_settings() {\n    parse();\n}\n"),
        ("b.rs", "// Закрывает соединение\nfn close_connection() {\n    drop();\n}\n"),
    ]);
    root.build();
    for query in ["配置文件", "соединение", "설정"] {
        let answer = semantic(&root, query);
        assert_eq!(
            (answer.items.len(), answer.degraded),
            (0, vec!["script".to_owned()]),
            "{query}"
        );
    }
    assert_eq!(semantic(&root, "read 配置").degraded, ["script"]);
    assert!(semantic(&root, "read settings").degraded.is_empty());
    for (query, path) in [("配置文件", "a.rs"), ("соединение", "b.rs")] {
        let answer = hybrid(&root.indexes, &params(query, 5));
        assert_eq!(paths(&answer)[0], path);
        assert_eq!((answer.degraded, answer.weak), (vec!["script".to_owned()], false), "{query}");
        let by_words = lexical(&root.indexes, &params(query, 5));
        assert_eq!((paths(&by_words), by_words.degraded.len()), (vec![path], 0), "{query}");
    }
}

#[test]
fn question_without_spaces_is_no_weak_match() {
    let root = TestRoot::new(&[
        ("a.go", "package a\n\n// 配置 日志 的级别\nfunc Level() int { return 1 }\n"),
        ("b.go", "package a\n\n// 关闭连接\nfunc Close() {}\n"),
    ]);
    root.build();
    let answer = hybrid(&root.indexes, &params("配置日志", 5));
    assert_eq!((paths(&answer)[0], answer.weak), ("a.go", false));
    let other = hybrid(&root.indexes, &params("密码加密算法", 5));
    assert!(other.weak || other.items.is_empty(), "{other:?}");
}

#[test]
fn question_about_something_else_is_a_weak_match_in_any_script() {
    let root = TestRoot::new(&[
        ("a.go", "package a\n\n// 这样的做法是什么意思\nfunc Level() int { return 1 }\n"),
        ("b.go", "package a\n\n// 关闭连接\nfunc Close() {}\n"),
        ("c.go", "package a\n\n// 配置 日志 的级别\nfunc Open() {}\n"),
    ]);
    root.build();
    // The pairs of its last words are in `a.go`, and those of what it is about are nowhere.
    let answer = hybrid(&root.indexes, &params("巧克力蛋糕和水果沙拉的做法是什么", 5));
    assert_eq!((paths(&answer)[0], answer.weak), ("a.go", true));
    let answer = hybrid(&root.indexes, &params("这样的做法", 5));
    assert_eq!((paths(&answer)[0], answer.weak), ("a.go", false));
}

#[test]
fn document_in_several_languages_is_one_result() {
    let english = "# Installation\n\nInstall the server with `kiosk setup`, then run it.\n";
    let chinese = "# 安装\n\n用 `kiosk setup` 安装服务器，然后运行。\n";
    let japanese = "# インストール\n\n`kiosk setup` でサーバーをインストールします。\n";
    let root = TestRoot::new(&[
        ("README.md", english),
        ("README.zh-CN.md", chinese),
        ("README.ja.md", japanese),
        ("docs/install.md", &format!("{english}\nThen read the manual of the kiosk.\n")),
        ("docs/zh/install.md", &format!("{chinese}\n然后阅读 kiosk 的手册。\n")),
        ("docs/ja/install.md", &format!("{japanese}\nそれから kiosk の手引を読む。\n")),
    ]);
    root.build();
    for (query, expected) in [
        ("how do I install with kiosk setup", ["README.md", "docs/install.md"]),
        ("用 kiosk setup 安装服务器", ["README.zh-CN.md", "docs/zh/install.md"]),
        ("kiosk setup でサーバーをインストール", ["README.ja.md", "docs/ja/install.md"]),
    ] {
        let answer = hybrid(&root.indexes, &params(query, 10));
        let mut found = paths(&answer);
        found.sort_unstable();
        assert_eq!(found, expected, "{query}");
    }
}

#[test]
fn unusual_queries_do_not_fail() {
    let root = TestRoot::new(&[("a.rs", "// 读取\nfn read() {}\n")]);
    root.build();
    let long = "读取配置".repeat(1000);
    for query in ["读", "。、！？", "\u{200b}", "读\0取", "ー", "ก่", &long] {
        for answer in [
            root.indexes.lexical(&params(query, 5), &CancelFlag::new(), &|_| {}),
            root.indexes.semantic(&params(query, 5), &CancelFlag::new(), &|_| {}),
            root.indexes.hybrid(&params(query, 5), &CancelFlag::new(), &|_| {}),
        ] {
            // A query beyond the limit is refused, and others are answered.
            assert!(answer.is_ok() || query.len() > 4096 || query.contains('\0'), "{query:?}");
        }
    }
}

#[test]
fn language_without_a_grammar_is_searched_by_windows() {
    let root = TestRoot::new(&[
        ("src/queue.cob", "       IDENTIFICATION DIVISION.\n       PROGRAM-ID. MAIL-QUEUE.\n"),
        ("src/queue.nim", "proc pushLetter(queue: var Queue) =\n  queue.add(letter)\n"),
        ("src/main.nim", "import queue\n\npushLetter(outgoing)\n"),
    ]);
    let status = root.build();
    assert!(status.complete, "{status:?}");
    assert_eq!(root.hybrid("push a letter to the queue")[0], "src/queue.nim");
    assert_eq!(root.hybrid("identification division")[0], "src/queue.cob");
    let symbols = serde_json::from_value(json!({"query": "pushLetter"})).unwrap();
    assert!(root.indexes.symbols(&symbols).unwrap().items.is_empty());
    let map = root.indexes.map(&MapParams::default(), &CancelFlag::new()).unwrap();
    assert_eq!(map.text, "src/main.nim\nsrc/queue.cob\nsrc/queue.nim\n");
    let short = MapParams { budget: 5, ..MapParams::default() };
    assert_eq!(root.indexes.map(&short, &CancelFlag::new()).unwrap().files.len(), 1);
}

#[test]
fn definitions_of_languages_read_from_tokens_are_results() {
    let root = TestRoot::new(&[
        (
            "Mailer.kt",
            "class Mailer {\n    fun retryLater(letter: String) {\n        wait()\n    }\n}\n",
        ),
        (
            "queue.ex",
            "defmodule Mail.Queue do\n  def push_letter(queue, letter) do\n    [letter | queue]\n  end\nend\n",
        ),
        (
            "queue.zig",
            "pub const Queue = struct {\n    pub fn popLetter(self: *Queue) void {\n        _ = self;\n    }\n};\n",
        ),
        ("schema.sql", "CREATE TABLE outgoing_letter (\n  id int\n);\n"),
    ]);
    root.build();
    for (query, path, name, lines) in [
        ("retryLater", "Mailer.kt", "retryLater", (2, 4)),
        ("push_letter", "queue.ex", "push_letter", (2, 4)),
        ("popLetter", "queue.zig", "popLetter", (2, 4)),
        ("outgoing_letter", "schema.sql", "outgoing_letter", (1, 3)),
    ] {
        let symbols = serde_json::from_value(json!({"query": query})).unwrap();
        let found = root.indexes.symbols(&symbols).unwrap().items;
        let first = &found[0];
        assert_eq!((first.path.as_str(), first.name.as_str()), (path, name));
        assert_eq!((first.start_line, first.end_line), lines, "{query}");
        assert_eq!(root.hybrid(query)[0], path);
    }
}
