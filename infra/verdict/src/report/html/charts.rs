//! Two charts: how long an order takes, and what an outage costs.

use super::axis::Scale;
use super::svg::{bar, decoration, drawing, label, tick, upright};
use super::text::{escaped, many, number, short};
use crate::worlds::{Counts, Times};

/// The columns of a distribution, about.
const COLUMNS: usize = 40;
/// The room of a distribution above its columns, in pixels: three labels.
const ABOVE: u32 = 50;
/// A distribution's height, in pixels.
const HEIGHT: u32 = 120;

/// Both charts.
pub(super) fn section(counts: &Counts) -> String {
    format!("{}{}", completion(counts), outages(counts))
}

fn completion(counts: &Counts) -> String {
    let rows = [("Without an outage", "busy", &counts.calm_ms), ("With one service away", "wait", &counts.outage_ms)];
    let classes = || rows.iter().flat_map(|(_, _, times)| times.classes());
    let shortest = classes().map(|(ms, _)| ms).min();
    let longest = rows.iter().filter_map(|(_, _, times)| times.within(1_000)).max();
    let body = match shortest.zip(longest) {
        None => "<p class=\"quiet\">No order was processed on such a day.</p>".to_owned(),
        Some((shortest, longest)) => {
            let scale = Scale::of(shortest, longest);
            let lanes: String = rows.iter().map(|(name, tone, times)| lane(name, tone, times, scale)).collect();
            let ticks: String = scale
                .ticks()
                .map(|(ms, on_phone)| tick(tick_class(on_phone), scale.place(ms), 14, &short(ms)))
                .collect();
            let axis = decoration("scale", 20, &ticks);
            format!(
                "<div class=\"lanes\">{lanes}<div class=\"lane\"><p></p>{axis}</div></div>\
                 <p class=\"quiet\">The axis is logarithmic. A column's height is its share of the row's orders.</p>"
            )
        }
    };
    format!("<section class=\"panel\"><h2>How long an order takes</h2>{body}</section>")
}

/// The class of a tick.
pub(super) const fn tick_class(on_phone: bool) -> &'static str {
    if on_phone { "mark" } else { "mark minor" }
}

fn lane(name: &str, tone: &str, times: &Times, scale: Scale) -> String {
    let marks = marks(times);
    let grid: String = scale
        .ticks()
        .map(|(ms, on_phone)| upright(if on_phone { "grid" } else { "grid minor" }, scale.place(ms), (0, HEIGHT)))
        .collect();
    let words: Vec<String> = marks.iter().map(|(name, ms)| format!("{name} {}", short(*ms))).collect();
    let lines: String =
        (0..).zip(&marks).map(|(row, (_, ms))| upright("reach", scale.place(*ms), (4 + 15 * row, HEIGHT))).collect();
    let labels: String = (0..)
        .zip(&marks)
        .zip(&words)
        .map(|((row, (_, ms)), words)| label("mark said", scale.place(*ms), 13 + 15 * row, words))
        .collect();
    let floor = format!("<line class=\"axis\" x1=\"0\" x2=\"100%\" y1=\"{HEIGHT}\" y2=\"{HEIGHT}\"/>");
    let parts = format!("{grid}{}{lines}{floor}{labels}", columns(times, scale));
    let said = if words.is_empty() { "no order".to_owned() } else { words.join(", ") };
    let picture = drawing("plot", HEIGHT + 1, &format!("{name}: {said}"), &parts);
    let count = many(times.count(), "order");
    format!("<div class=\"lane\" data-tone=\"{tone}\"><p><b>{name}</b> <small>{count}</small></p>{picture}</div>")
}

/// The worst, the 99th of a hundred and the median. Two that are the same are one.
fn marks(times: &Times) -> Vec<(String, u64)> {
    let mut marks: Vec<(String, u64)> = Vec::new();
    for (name, share) in [("worst", 1_000), ("p99", 990), ("median", 500)] {
        let Some(ms) = times.within(share) else { continue };
        match marks.last_mut().filter(|(_, last)| *last == ms) {
            Some((names, _)) => *names = format!("{name} = {names}"),
            None => marks.push((name.to_owned(), ms)),
        }
    }
    marks
}

fn columns(times: &Times, scale: Scale) -> String {
    // A time's class is a tenth longer than the one before it.
    const GROWTH: f64 = 10.5;
    let number_of = |ms: u64| ((ms.max(1) as f64).ln() * GROWTH).round() as usize;
    let each = (200_usize).div_ceil(COLUMNS);
    let mut columns: Vec<(usize, u64)> = Vec::new();
    for (ms, count) in times.classes() {
        let column = number_of(ms) / each;
        match columns.last_mut().filter(|(last, _)| *last == column) {
            Some((_, all)) => *all += count,
            None => columns.push((column, count)),
        }
    }
    let most = columns.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1) as f64;
    let time_of = |column: usize| ((column * each) as f64 / GROWTH).exp() as u64;
    let column = |&(column, count): &(usize, u64)| {
        let (from_ms, to_ms) = (time_of(column), time_of(column + 1));
        let (from, to) = (scale.place(from_ms), scale.place(to_ms));
        let height = (f64::from(HEIGHT - ABOVE) * count as f64 / most).max(2.0);
        let words = format!("{} to {}: {}", short(from_ms), short(to_ms), many(count, "order"));
        bar("fill", (from, (to - from - 0.25).max(0.1)), (f64::from(HEIGHT) - height, height), &words)
    };
    columns.iter().map(column).collect()
}

fn outages(counts: &Counts) -> String {
    let row = |(ms, (worlds, lost)): (&u64, &(u64, u64))| {
        let share = 100.0 * *lost as f64 / (*worlds).max(1) as f64;
        let kept = bar("fill", (0.0, 100.0 - share), (0.0, 14.0), &many(worlds - lost, "world"));
        let kept = if lost < worlds { kept } else { String::new() };
        let gone = bar("fill", (100.0 - share, share), (0.0, 14.0), &many(*lost, "world"));
        let gone = if *lost > 0 { format!("<g data-tone=\"bad\">{gone}</g>") } else { String::new() };
        let parts = format!("<g data-tone=\"good\">{kept}</g>{gone}");
        let said = if *lost == 0 { "none".to_owned() } else { number(*lost) };
        format!(
            "<tr><th scope=\"row\">{}</th><td class=\"wide\">{}</td><td class=\"right\">{}</td>\
             <td class=\"right\">{said}</td></tr>",
            escaped(&short(*ms)),
            decoration("share", 14, &parts),
            number(*worlds)
        )
    };
    let rows: String = counts.outages.iter().map(row).collect();
    let body = if rows.is_empty() {
        "<p class=\"quiet\">No world had an outage on a day without another fault.</p>".to_owned()
    } else {
        format!(
            "<table class=\"outages\"><thead><tr><th scope=\"col\">Away for</th><td class=\"wide\"></td>\
             <th scope=\"col\" class=\"right\">Worlds</th><th scope=\"col\" class=\"right\">Gave up</th></tr></thead>\
             <tbody>{rows}</tbody></table>\
             <ul class=\"legend\"><li><span class=\"swatch\" data-tone=\"good\"></span>each order outlasted it</li>\
             <li><span class=\"swatch\" data-tone=\"bad\"></span>an order was given up</li></ul>"
        )
    };
    format!("<section class=\"panel\"><h2>What an outage costs</h2>{body}</section>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_marks_are_one_and_each_column_is_counted() {
        let mut counts = Counts::default();
        (0..10).for_each(|_| counts.calm_ms.add(4_000));
        assert_eq!(marks(&counts.calm_ms).len(), 1);
        counts.calm_ms.add(90_000);
        let names: Vec<String> = marks(&counts.calm_ms).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["p99 = worst", "median"]);
        let chart = completion(&counts);
        assert!(chart.contains(": 10 orders</title>") && chart.contains(": 1 order</title>"), "{chart}");
        assert!(completion(&Counts::default()).contains("No order was processed"));
    }

    #[test]
    fn an_outage_shows_its_worlds_and_those_that_lost_an_order() {
        let mut counts = Counts::default();
        counts.outages.insert(600_000, (5, 3));
        let chart = outages(&counts);
        assert!(chart.contains("10m") && chart.contains(">5</td>") && chart.contains(">3</td>"), "{chart}");
    }
}
