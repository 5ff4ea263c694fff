//! Bounds of lists of approvals: an approval has a diff and the arguments of its call, and several
//! hundred may wait.

use std::io;

use cairn_protocol::approval::Approval;

/// Bytes of the complete approvals of a list.
const COMPLETE_BYTES: usize = 256 * 1024;
/// Bytes of a text in a shortened approval.
const MAX_TEXT: usize = 300;
/// Entries of a list in a shortened approval.
const MAX_ENTRIES: usize = 4;

/// Shortens the approvals that do not fit into the list; those before them are complete.
pub(crate) fn bound<'a>(list: impl IntoIterator<Item = &'a mut Approval>) {
    let mut remaining = COMPLETE_BYTES;
    for approval in list {
        match remaining.checked_sub(bytes(approval)) {
            Some(rest) => remaining = rest,
            None => shorten(approval),
        }
    }
}

/// Returns the bytes of an approval on the wire.
fn bytes(approval: &Approval) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0 += text.len();
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // An approval that cannot be written counts as too long.
    serde_json::to_writer(&mut counter, approval).map_or(usize::MAX, |()| counter.0)
}

fn shorten(approval: &mut Approval) {
    approval.shortened = true;
    approval.arguments = serde_json::json!({});
    let preview = &mut approval.preview;
    preview.diff = None;
    cut(&mut preview.summary);
    cut(&mut approval.rule);
    let rules = std::iter::once(&mut approval.grants).chain(&mut approval.patterns);
    let lists = rules.chain([&mut preview.paths, &mut preview.domains, &mut preview.warnings]);
    preview.command.iter_mut().chain(&mut preview.folder).for_each(cut);
    for texts in lists {
        texts.truncate(MAX_ENTRIES);
        texts.iter_mut().for_each(cut);
    }
    if let Some(form) = &mut approval.form {
        form.fields.clear();
        cut(&mut form.message);
    }
}

/// Cuts a text at the end of a character.
fn cut(text: &mut String) {
    if text.len() > MAX_TEXT {
        let end = (0..=MAX_TEXT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use cairn_protocol::{
        approval::Preview,
        id::{ApprovalId, SessionId},
        time::Timestamp,
    };

    use super::*;

    fn approval(diff: usize) -> Approval {
        Approval {
            approval_id: ApprovalId::new(),
            session_id: SessionId::new(),
            run_id: None,
            tool: "write_file".into(),
            arguments: serde_json::json!({"path": "a.rs", "content": "x".repeat(diff)}),
            preview: Preview {
                summary: "é".repeat(400),
                diff: Some("+x\n".repeat(diff / 3)),
                paths: vec!["a.rs".repeat(200); 50],
                ..Preview::default()
            },
            rule: "write_file".into(),
            project: None,
            grants: vec!["write_file(a.rs)".into()],
            patterns: vec![],
            form: None,
            created_at: Timestamp(0),
            expires_at: Timestamp(1),
            resolution: None,
            shortened: false,
        }
    }

    #[test]
    fn list_of_many_large_approvals_is_bounded() {
        let mut list: Vec<Approval> = (0..500).map(|_| approval(60_000)).collect();
        assert!(list.iter().map(bytes).sum::<usize>() > 50 * 1024 * 1024);
        bound(&mut list);
        let total: usize = list.iter().map(bytes).sum();
        assert!(total < 2 * 1024 * 1024, "{total}");
        assert!(!list[0].shortened && list[0].preview.diff.is_some());
        let last = &list[499];
        assert!(
            last.shortened
                && last.preview.diff.is_none()
                && last.arguments == serde_json::json!({})
        );
        assert!(last.preview.summary.ends_with('…') && last.grants == ["write_file(a.rs)"]);
    }

    #[test]
    fn small_approval_after_large_ones_is_complete() {
        let mut list = [approval(200_000), approval(10), approval(200)];
        bound(&mut list);
        assert_eq!(list.map(|approval| approval.shortened), [true, false, false]);
    }
}
