//! References to definitions, and the files that depend on a file.

use std::sync::Arc;

use cairn_protocol::error::Reason;
use cairn_protocol::search::{
    ImpactParams, ReferenceConfidence, ReferenceUse, ReferencesAnswer, ReferencesParams,
};
use cairn_search::CancelFlag;

use crate::fixture::{TestRoot, write_file};

const FILES: &[(&str, &str)] = &[
    ("shop/__init__.py", ""),
    (
        "shop/cart.py",
        "class Cart:\n    def total(self):\n        return 1\n\ndef empty():\n    return Cart()\n",
    ),
    (
        "shop/pay.py",
        "from shop.cart import Cart, empty as fresh\n\ndef pay():\n    cart = fresh()\n    total = Cart().total()\n    return total\n",
    ),
    ("shop/other.py", "def empty():\n    return None\n\nempty()\n"),
    ("app.py", "from shop import pay\n\npay.pay()\n"),
    // A circle of imports.
    ("shop/a.py", "from shop import b\n"),
    ("shop/b.py", "from shop import a\n"),
];

fn params(symbol: &str, path: Option<&str>) -> ReferencesParams {
    ReferencesParams {
        symbol: Some(symbol.into()),
        path: path.map(str::to_owned),
        k: 100,
        ..ReferencesParams::default()
    }
}

fn locations(answer: &ReferencesAnswer) -> Vec<(String, u32, ReferenceUse)> {
    answer.items.iter().map(|item| (item.path.clone(), item.line, item.kind)).collect()
}

#[test]
fn uses_follow_imports_and_aliases_and_not_equal_names() {
    let root = TestRoot::new(FILES);
    root.build();
    let flag = CancelFlag::default();
    let answer = root.indexes.references(&params("empty", Some("shop/cart.py")), &flag).unwrap();
    let at = |path: &str, line, kind| (path.to_owned(), line, kind);
    assert_eq!(
        locations(&answer),
        [
            at("shop/cart.py", 5, ReferenceUse::Definition),
            at("shop/pay.py", 1, ReferenceUse::Import),
            at("shop/pay.py", 4, ReferenceUse::Call),
        ]
    );
    assert!(answer.complete && !answer.truncated);
    assert!(answer.items.iter().all(|item| item.confidence == ReferenceConfidence::Exact));
    assert_eq!(answer.others.len(), 1);
    assert_eq!(answer.items[2].enclosing.as_ref().unwrap().name, "pay");

    // The definition by its line, and calls alone.
    let by_line = ReferencesParams {
        path: Some("shop/cart.py".into()),
        line: Some(3),
        kinds: vec![ReferenceUse::Call],
        k: 100,
        ..ReferencesParams::default()
    };
    let answer = root.indexes.references(&by_line, &flag).unwrap();
    assert_eq!(answer.definition.name, "total");
    assert_eq!(locations(&answer), [at("shop/pay.py", 5, ReferenceUse::Call)]);

    // A save is answered for at once.
    write_file(&root.top(), "shop/pay.py", "x = 1\n");
    root.build();
    let answer = root.indexes.references(&params("empty", Some("shop/cart.py")), &flag).unwrap();
    assert_eq!(answer.items.len(), 1);
}

#[test]
fn impact_follows_importers_within_a_depth() {
    let root = TestRoot::new(FILES);
    root.build();
    let impact = |path: &str, depth| {
        let params = ImpactParams { path: path.into(), depth, k: 100, ..ImpactParams::default() };
        let answer = root.indexes.impact(&params)?;
        Ok::<_, cairn_protocol::error::Failure>(
            answer.items.into_iter().map(|i| (i.path, i.steps)).collect::<Vec<_>>(),
        )
    };
    assert_eq!(impact("shop/cart.py", 1).unwrap(), [("shop/pay.py".to_owned(), 1)]);
    assert_eq!(
        impact("shop/cart.py", 2).unwrap(),
        [("shop/pay.py".to_owned(), 1), ("app.py".to_owned(), 2)]
    );
    assert_eq!(impact("shop/a.py", 9).unwrap(), [("shop/b.py".to_owned(), 1)]);
    assert_eq!(impact("shop/none.py", 1).unwrap_err().reason, Reason::PathNotFound);
    assert_eq!(impact("shop/a.py", 0).unwrap_err().reason, Reason::InvalidParams);
}

#[test]
fn requests_without_a_definition_are_refused() {
    let root = TestRoot::new(FILES);
    root.build();
    let flag = CancelFlag::default();
    let line = |line| ReferencesParams {
        path: Some("shop/cart.py".into()),
        line: Some(line),
        k: 10,
        ..ReferencesParams::default()
    };
    for wrong in [
        ReferencesParams { k: 10, ..ReferencesParams::default() },
        params("nothing", None),
        params("pay", Some("shop/cart.py")),
        ReferencesParams { k: 0, ..params("empty", None) },
        line(4),
        line(4_000_000_000),
    ] {
        let failure = root.indexes.references(&wrong, &flag).unwrap_err();
        assert_eq!(failure.reason, Reason::InvalidParams, "{wrong:?}");
    }
    let mut path = params("empty", None);
    path.root = Some("/nowhere".into());
    let failure = root.indexes.references(&path, &flag).unwrap_err();
    assert_eq!(failure.reason, Reason::RootNotFound);
}

#[test]
fn name_of_many_definitions_is_bounded() {
    let files: Vec<(String, String)> = (0..500)
        .map(|n| (format!("m{n}.py"), "def same():\n    pass\n\nsame()\n".repeat(5)))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    let root = TestRoot::new(&files);
    root.build();
    let flag = Arc::new(CancelFlag::default());
    let answer = root.indexes.references(&params("same", Some("m7.py")), &flag).unwrap();
    assert!(answer.others.len() <= 20, "{}", answer.others.len());
    assert!(answer.items.iter().all(|item| item.path == "m7.py"));
}

#[test]
fn uses_lead_into_and_out_of_the_scripts_of_components() {
    let root = TestRoot::new(&[
        ("src/price.ts", "export function priceOf(id: number) {\n  return id * 2;\n}\n"),
        (
            "src/Cart.vue",
            "<template>\n  <p>{{ total }}</p>\n</template>\n\n<script setup lang=\"ts\">\n\
             import { priceOf } from \"./price\";\n\nfunction total() {\n  return priceOf(1);\n}\n</script>\n",
        ),
        (
            "src/Item.svelte",
            "<script>\n  import { priceOf } from './price';\n  const price = priceOf(2);\n</script>\n",
        ),
    ]);
    root.build();
    let flag = CancelFlag::default();
    let answer = root.indexes.references(&params("priceOf", None), &flag).unwrap();
    let at = |path: &str, line, kind| (path.to_owned(), line, kind);
    assert_eq!(
        locations(&answer),
        [
            at("src/Cart.vue", 6, ReferenceUse::Import),
            at("src/Cart.vue", 9, ReferenceUse::Call),
            at("src/Item.svelte", 2, ReferenceUse::Import),
            at("src/Item.svelte", 3, ReferenceUse::Call),
            at("src/price.ts", 1, ReferenceUse::Definition),
        ]
    );
    let column = |path: &str, line| {
        answer.items.iter().find(|i| i.path == path && i.line == line).map(|i| i.column)
    };
    assert_eq!([column("src/Cart.vue", 9), column("src/Item.svelte", 3)], [Some(9), Some(16)]);
    let item = &answer.items[1];
    assert_eq!(item.enclosing.as_ref().map(|e| e.name.as_str()), Some("total"));
}
