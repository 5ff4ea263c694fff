//! Rendering of summaries in this form.
