//! Writes presets from a table of models: `import FILE SOURCE DATE > src/presets.json`.

use std::io::Write as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, source, date] = arguments.as_slice() else {
        return Err("usage: import FILE SOURCE DATE".into());
    };
    let presets =
        cairn_model_presets::Presets::import(&std::fs::read_to_string(file)?, source, date)?;
    let mut output = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut output, &presets)?;
    output.write_all(b"\n")?;
    Ok(())
}
