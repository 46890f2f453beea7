use super::*;

const PLAIN: Paint = Paint { colours: false };

/// Steps by their names and predecessors: `"a"`, `"c: a b"`.
fn workflow(lines: &[&str]) -> Vec<Step> {
    let parts: Vec<(&str, &str)> = lines.iter().map(|line| line.split_once(": ").unwrap_or((line, ""))).collect();
    let place = |name: &str| parts.iter().position(|(step, _)| *step == name).unwrap();
    let step = |(name, after): &(&str, &str)| Step {
        name: (*name).to_owned(),
        agent: format!("x-{name}"),
        after: after.split_whitespace().map(place).collect(),
        unknown: Vec::new(),
    };
    parts.iter().map(step).collect()
}

fn is_drawn(lines: &[&str], expected: &[&str]) {
    let text = picture(&workflow(lines), PLAIN);
    assert_eq!(text.lines().collect::<Vec<_>>(), expected, "\n{text}");
}

#[test]
fn a_chain_is_one_line_down() {
    is_drawn(
        &["reserve", "charge: reserve", "ship: charge"],
        &["●  reserve  x-reserve", "│", "●  charge   x-charge", "│", "●  ship     x-ship"],
    );
}

#[test]
fn steps_without_predecessors_stand_side_by_side_and_have_no_line() {
    is_drawn(&["a", "b", "c"], &["●  a  x-a", "●  b  x-b", "●  c  x-c"]);
}

#[test]
fn a_diamond_opens_and_closes() {
    is_drawn(
        &["a", "b: a", "c: a", "d: b c"],
        &["●    a  x-a", "│", "├─●  b  x-b", "● │  c  x-c", "│ │", "●─┘  d  x-d"],
    );
}

#[test]
fn one_step_before_many_and_one_after_them() {
    is_drawn(
        &["a", "b: a", "c: a", "d: a", "e: b c d"],
        &["●      a  x-a", "│", "├─●    b  x-b", "├─│─●  c  x-c", "● │ │  d  x-d", "│ │ │", "●─┴─┘  e  x-e"],
    );
}

#[test]
fn many_steps_before_one() {
    is_drawn(
        &["a", "b", "c", "d: a b c"],
        &["●      a  x-a", "│ ●    b  x-b", "│ │ ●  c  x-c", "│ │ │", "●─┴─┘  d  x-d"],
    );
}

#[test]
fn a_line_over_several_levels_and_a_predecessor_in_the_middle_that_goes_on() {
    is_drawn(
        &["a", "b", "c", "d: a b c", "e: b d"],
        &["●      a  x-a", "│ ●    b  x-b", "│ │ ●  c  x-c", "│ │ │", "●─┼─┘  d  x-d", "│ │", "●─┘    e  x-e"],
    );
}

#[test]
fn a_step_may_stand_before_its_predecessors() {
    is_drawn(&["b: a", "a"], &["●  a  x-a", "│", "●  b  x-b"]);
}

#[test]
fn names_stand_for_the_lines_for_which_there_is_no_room() {
    let mut lines: Vec<String> = (0..6).map(|nth| format!("step-{nth}-with-a-name-as-long-as-may-be")).collect();
    lines.push(format!("last: {}", lines.join(" ")));
    let steps = workflow(&lines.iter().map(|line| &**line).collect::<Vec<_>>());
    let text = picture(&steps, PLAIN);
    let expected = "\
│ │ │ │
●─┴─┴─┘    last                                  x-last
             after step-4-with-a-name-as-long-as-may-be,
                   step-5-with-a-name-as-long-as-may-be
";
    assert!(text.ends_with(expected), "\n{text}");
    assert!(text.contains("\n│ │ │ │ ●  step-4"), "\n{text}");
}

#[test]
fn a_workflow_that_is_none_is_drawn_all_the_same() {
    assert_eq!(picture(&[], PLAIN), "");
    let mut circle = workflow(&["a: b", "b: a"]);
    circle[0].unknown.push("gone".to_owned());
    assert_eq!(picture(&circle, PLAIN), "●  a  x-a\n│    after b, gone\n●  b  x-b\n");
}

#[test]
fn colours_do_not_move_the_columns() {
    let text = picture(&workflow(&["a", "b: a"]), Paint { colours: true });
    assert!(text.starts_with("\x1b[2m●\x1b[0m  \x1b[1ma\x1b[0m  "), "{text:?}");
}

/// The predecessors of each step as a reader of the picture finds them: along the lines, or by name.
fn read(text: &str) -> Vec<(String, Vec<String>)> {
    let lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
    let at = |row: usize, column: usize| lines[row].get(column).copied().unwrap_or(' ');
    let goes_down = |sign: char| "│├┤┼".contains(sign);
    let name_in = |row: usize| text.lines().nth(row).unwrap().split_whitespace().rev().nth(1).unwrap().to_owned();
    // Up along a rail to its step.
    let owner = |row: usize, column: usize| {
        let above = (0..row).rev().find(|above| at(*above, column) == '●').unwrap();
        assert!((above + 1..row).all(|between| goes_down(at(between, column))), "row {row}, column {column}\n{text}");
        name_in(above)
    };
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for (row, line) in text.lines().enumerate() {
        if let Some(place) = lines[row].iter().position(|sign| *sign == '●') {
            let mut from = Vec::new();
            if row > 0 && goes_down(at(row - 1, place)) {
                from.push(owner(row, place));
            }
            let left = (0..place).rev().take_while(|column| "─│┴┼├└".contains(at(row, *column)));
            let right = (place + 1..lines[row].len()).take_while(|column| "─│┴┼┤┘".contains(at(row, *column)));
            let met = left.chain(right).filter(|column| "┴┼├└┤┘".contains(at(row, *column)));
            from.extend(met.map(|column| owner(row, column)));
            found.push((name_in(row), from));
        } else if line.chars().any(char::is_alphanumeric) {
            let words = line.trim_matches(|sign: char| " │".contains(sign)).trim_start_matches("after ");
            found.last_mut().unwrap().1.extend(words.split(", ").map(|name| name.trim_matches(',').to_owned()));
        }
    }
    found
}

#[test]
fn every_edge_of_any_workflow_can_be_read_in_eighty_columns() {
    for seed in 0..150 {
        let mut random = fastrand::Rng::with_seed(seed);
        let size = random.usize(1..=50);
        let percent = random.choice([3, 10, 30, 90]).unwrap();
        let step = |later: usize| {
            let earlier: Vec<String> =
                (0..later).filter(|_| random.u32(0..100) < percent).map(|nth| format!("s{nth}")).collect();
            format!("s{later}: {}", earlier.join(" "))
        };
        let lines: Vec<String> = (0..size).map(step).collect();
        let steps = workflow(&lines.iter().map(|line| &**line).collect::<Vec<_>>());
        let text = picture(&steps, PLAIN);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "seed {seed}\n{text}");
        let mut found = read(&text);
        assert_eq!(found.len(), size, "seed {seed}\n{text}");
        for (name, from) in &mut found {
            from.sort_unstable();
            let step = steps.iter().find(|step| step.name == *name).unwrap();
            let mut expected: Vec<&str> = step.after.iter().map(|earlier| &*steps[*earlier].name).collect();
            expected.sort_unstable();
            assert_eq!(*from, expected, "seed {seed}, {name}\n{text}");
        }
    }
}

#[test]
fn what_is_special_about_a_step_stands_behind_its_agent() {
    let text = "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"x\"\nwhen = \"/Order/b exists\"\n\
                [[step]]\nname = \"b\"\nagent = \"x\"\nafter = [\"a\"]\noptional = true\npivot = true\nundo = \"none\"\n";
    let workflow = domain::workflow::Workflow::parse(text, &["x"]).unwrap();
    let drawn = picture(&steps(&api::workflow_steps(&workflow)), PLAIN);
    assert_eq!(drawn, "●  a  x (when)\n│\n●  b  x (optional, pivot, no undo)\n");
    let text = "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"x\"\npivot = true\n\
                not_before = \"/Order/DeliverOn\"\n[[step]]\nname = \"b\"\nagent = \"x\"\nafter = [\"a\"]\n\
                wait = \"15s\"\nwait_within = \"6h\"\n";
    let workflow = domain::workflow::Workflow::parse(text, &["x"]).unwrap();
    let expected = "●  a  x (pivot, not before /Order/DeliverOn)\n│\n●  b  x (waits 15s, result within 6h)\n";
    assert_eq!(picture(&steps(&api::workflow_steps(&workflow)), PLAIN), expected);
    let step = serde_json::json!({"Name": "a", "Agent": "x", "Pivot": true, "NotBefore": "/Order/On", "WaitMs": 1_500,
                                  "WaitWithinMs": 172_800_000, "After": []});
    let workflow = serde_json::json!({"Name": "w", "Version": 1, "Current": true, "Priority": "normal",
                                      "Steps": [step]});
    let workflow: wire::Workflow<'_> = serde_json::from_value(workflow).unwrap();
    let expected = "●  a  x (pivot, waits 1s 500ms, not before /Order/On, result within 2d)\n";
    assert_eq!(picture(&steps(&workflow.steps), PLAIN), expected);
}
