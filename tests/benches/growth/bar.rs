//! How much worse a store that has grown may be, and what is told from noise.

/// A figure may be worse than that of an empty store by a fifth.
pub(crate) const WORSE_MAX: f64 = 1.2;

/// Two figures of the same kind, of the empty store and of the grown one.
#[derive(Debug, Clone)]
pub(crate) struct Beside<'a> {
    pub(crate) text: &'a str,
    pub(crate) is_better_when_more: bool,
    /// A difference below this is not told from noise. In the unit of the figure.
    pub(crate) floor: f64,
    /// Upper limit for the grown store, independent of the empty one.
    pub(crate) at_most: Option<f64>,
    pub(crate) small: f64,
    pub(crate) large: f64,
}

impl Beside<'_> {
    pub(crate) fn print_head(small: &str, large: &str) {
        println!("{:<44} {small:>12} {large:>12} {:>8} {:>8}", "", "ratio", "floor");
    }

    /// Prints the line; gives whether the grown store is good enough.
    pub(crate) fn print(&self) -> bool {
        let Self { text, floor, small, large, .. } = self;
        let note = if self.is_good() { "" } else { "  WORSE" };
        println!("{text:<44} {small:>12.3} {large:>12.3} {:>8.2} {floor:>8}{note}", self.ratio());
        self.is_good()
    }

    /// How many times as bad; 1 where both are nothing.
    fn ratio(&self) -> f64 {
        let (better, worse) =
            if self.is_better_when_more { (self.large, self.small) } else { (self.small, self.large) };
        if worse == better { 1.0 } else { worse / better }
    }

    fn is_good(&self) -> bool {
        let is_close = self.ratio() <= WORSE_MAX || (self.large - self.small).abs() < self.floor;
        is_close && self.at_most.is_none_or(|most| self.large <= most)
    }
}

/// The middle one; nothing of none.
pub(crate) fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(is_better_when_more: bool, floor: f64, small: f64, large: f64) -> Beside<'static> {
        Beside { text: "", is_better_when_more, floor, at_most: None, small, large }
    }

    #[test]
    fn a_fifth_is_allowed_and_more_only_below_the_floor() {
        assert!(beside(false, 0.0, 10.0, 11.9).is_good());
        assert!(!beside(false, 0.0, 10.0, 12.1).is_good());
        assert!(beside(false, 3.0, 10.0, 12.1).is_good());
        assert!(!beside(true, 0.0, 12.1, 10.0).is_good());
        assert!(beside(true, 0.0, 10.0, 12.1).is_good());
    }

    #[test]
    fn what_has_a_limit_is_good_up_to_it() {
        let limited = |large| Beside { at_most: Some(50.0), ..beside(false, 0.0, 49.0, large) };
        assert!(limited(50.0).is_good() && !limited(50.1).is_good());
    }

    #[test]
    fn nothing_beside_nothing_is_good_and_something_beside_nothing_is_not() {
        assert!(beside(false, 0.0, 0.0, 0.0).is_good());
        assert!(!beside(false, 0.1, 0.0, 1.0).is_good());
    }

    #[test]
    fn the_middle_does_not_mind_the_order() {
        assert_eq!(middle(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(middle(Vec::new()), None);
    }
}
