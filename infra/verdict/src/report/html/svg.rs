//! Parts of drawings. Places across are percents, so that a drawing has the width of its page; lengths down and texts
//! are pixels, so that they can be read on a phone.

use super::text::escaped;

/// A drawing. Its words are those of a reader without eyes.
pub(super) fn drawing(class: &str, height: u32, words: &str, parts: &str) -> String {
    format!(
        "<svg class=\"{class}\" width=\"100%\" height=\"{height}\" role=\"img\" aria-label=\"{words}\">\
         <title>{words}</title>{parts}</svg>",
        words = escaped(words)
    )
}

/// A drawing that says nothing that is not said elsewhere.
pub(super) fn decoration(class: &str, height: u32, parts: &str) -> String {
    format!("<svg class=\"{class}\" width=\"100%\" height=\"{height}\" aria-hidden=\"true\">{parts}</svg>")
}

/// A bar with words of its own. It is three pixels wide at least.
pub(super) fn bar(class: &str, (x, width): (f64, f64), (y, height): (f64, f64), words: &str) -> String {
    format!(
        "<rect class=\"{class}\" x=\"{x:.2}%\" width=\"{width:.2}%\" style=\"width:max({width:.2}%,3px)\" y=\"{y:.1}\" \
         height=\"{height:.1}\" rx=\"2\"><title>{}</title></rect>",
        escaped(words)
    )
}

/// A line from top to bottom.
pub(super) fn upright(class: &str, x: f64, (from, to): (u32, u32)) -> String {
    format!("<line class=\"{class}\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"{from}\" y2=\"{to}\"/>")
}

/// A text that stays within the drawing: it ends at its place if that is far to the right, and begins there if not.
pub(super) fn label(class: &str, x: f64, y: u32, text: &str) -> String {
    let (anchor, shift) = if x > 50.0 { ("end", -4) } else { ("start", 4) };
    let text = escaped(text);
    format!("<text class=\"{class}\" x=\"{x:.2}%\" y=\"{y}\" dx=\"{shift}\" text-anchor=\"{anchor}\">{text}</text>")
}

/// A text in the middle of its place; at an end of the drawing, within it.
pub(super) fn tick(class: &str, x: f64, y: u32, text: &str) -> String {
    let anchor = match x {
        ..4.0 => "start",
        96.0.. => "end",
        _ => "middle",
    };
    format!("<text class=\"{class}\" x=\"{x:.2}%\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>", escaped(text))
}
