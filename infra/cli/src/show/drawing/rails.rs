//! The lines on the left of the steps.

use super::Step;

/// A row of the picture.
#[derive(Debug)]
pub(super) struct Row {
    /// The lines.
    pub(super) rails: String,
    /// The rails that go on below it, for a text of several lines.
    pub(super) below: String,
    /// The step that stands in it, if any.
    pub(super) step: Option<usize>,
    /// Predecessors of the step to which no line leads.
    pub(super) named: Vec<usize>,
}

/// A rail: the line down from a step to its successors.
#[derive(Debug, Clone, Copy)]
struct Rail {
    step: usize,
    /// Successors to which it has yet to lead.
    successors: usize,
}

/// The rails of a picture while it is drawn from top to bottom.
#[derive(Debug)]
pub(super) struct Rails<'a> {
    steps: &'a [Step],
    columns: Vec<Option<Rail>>,
    drawn: Vec<bool>,
    columns_max: usize,
}

impl<'a> Rails<'a> {
    pub(super) fn new(steps: &'a [Step], columns_max: usize) -> Self {
        Self { steps, columns: Vec::new(), drawn: vec![false; steps.len()], columns_max }
    }

    /// The row between two levels.
    pub(super) fn between(&self) -> Row {
        let rails = self.straight();
        Row { below: rails.clone(), rails, step: None, named: Vec::new() }
    }

    /// The row of the next step.
    pub(super) fn step(&mut self, step: usize) -> Row {
        let after = &self.steps[step].after;
        let column_of =
            |earlier: &usize| self.columns.iter().position(|rail| rail.is_some_and(|rail| rail.step == *earlier));
        let named = after.iter().copied().filter(|earlier| column_of(earlier).is_none()).collect();
        let mut from: Vec<usize> = after.iter().filter_map(column_of).collect();
        from.sort_unstable();
        for column in &from {
            if let Some(rail) = &mut self.columns[*column] {
                rail.successors -= 1;
            }
        }
        let place = self.place(&from);
        let rails = self.row(place, &from);
        for rail in &mut self.columns {
            *rail = rail.filter(|rail| rail.successors > 0);
        }
        self.drawn[step] = true;
        let is_after = |later: &&Step| later.after.contains(&step);
        let later = self.steps.iter().zip(&self.drawn).filter(|(_, drawn)| !**drawn).map(|(later, _)| later);
        let successors = later.filter(is_after).count();
        if successors > 0 && place < self.columns_max {
            self.columns.resize(self.columns.len().max(place + 1), None);
            self.columns[place] = Some(Rail { step, successors });
        }
        Row { rails, below: self.straight(), step: Some(step), named }
    }

    /// The column of a step: below a predecessor without further successors, else beside the first predecessor. A
    /// column of its own, which can have no rail, if there is none.
    fn place(&self, from: &[usize]) -> usize {
        let is_free = |column: &usize| self.columns.get(*column).is_none_or(Option::is_none);
        let has_ended = |column: &&usize| self.columns[**column].is_some_and(|rail| rail.successors == 0);
        let beside = from.first().map_or(0, |first| first + 1);
        from.iter()
            .find(has_ended)
            .copied()
            .or_else(|| (beside..self.columns_max).chain(0..beside).find(is_free))
            .unwrap_or(self.columns_max)
    }

    /// The lines of the row of a step in the column `place` with predecessors in the columns `from`.
    fn row(&self, place: usize, from: &[usize]) -> String {
        let (first, last) =
            (from.first().map_or(place, |first| place.min(*first)), from.last().map_or(place, |last| place.max(*last)));
        let sign = |column: usize| match self.columns.get(column).copied().flatten() {
            _ if column == place => '●',
            Some(rail) if from.contains(&column) => corner(column > first, column < last, rail.successors > 0),
            Some(_) => '│',
            None if (first..last).contains(&column) => '─',
            None => ' ',
        };
        let mut line = String::new();
        for column in 0..self.columns.len().max(place + 1) {
            line.push(sign(column));
            line.push(if (first..last).contains(&column) { '─' } else { ' ' });
        }
        line.trim_end().to_owned()
    }

    /// All rails, straight down.
    fn straight(&self) -> String {
        let line: String = self.columns.iter().map(|rail| if rail.is_some() { "│ " } else { "  " }).collect();
        line.trim_end().to_owned()
    }
}

/// A rail that meets a line to the left, to the right, or to both sides. It comes from above.
const fn corner(left: bool, right: bool, goes_on: bool) -> char {
    match (left, right, goes_on) {
        (true, true, true) => '┼',
        (true, true, false) => '┴',
        (true, false, true) => '┤',
        (true, false, false) => '┘',
        (false, true, true) => '├',
        (false, true, false) => '└',
        (false, false, _) => '│',
    }
}
